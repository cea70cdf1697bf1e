package locate

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/trust"
)

// Unknown is the client of which nothing is vouched for. All of them are one client.
const Unknown = "an unknown process"

// Owner is whose a process is, as the kernel vouches for it while the process lives.
type Owner struct {
	PID int // in /proc below root; 0 for none that is visible there
	UID int // effective; -1 for unknown
	// Client is "" for root and this program's user outside of all containers but this program's. It is "uid N" for
	// another user, "uid N in container ID" for one in a container, and else Unknown. See window.Window, Client.
	Client string
}

// Owners find out whose processes are. They are safe for concurrent use.
//
// A container is what a cgroup of root is named after (ContainerID): users may name cgroups of their own like any
// container. A process that is root in a namespace of processes below this program's, and in no such cgroup, is in a
// container of a kind that is not known.
type Owners struct {
	proc   string
	groups *cgroup.View
	self   status // this process in proc
	own    string // its container
}

// NewOwners returns the Owners of the processes in /proc below root.
func NewOwners(root string) *Owners {
	o := &Owners{proc: procOf(root), groups: cgroup.NewView(root)}
	buf := new([maxBytes]byte)
	o.self, _ = parseStatus(readFile(o.proc+"/self/status", buf[:]))
	o.own, _ = o.container(readFile(o.proc+"/self/cgroup", buf[:]))
	return o
}

// here is the /proc of this program's namespace of processes, by which the kernel numbers who connects.
const here = "/proc"

// Client returns whose a process is: see Owner.
func (o *Owners) Client(pid int) string { return o.Of(pid).Client }

// Of returns whose a process is. Another process may get its number afterwards.
func (o *Owners) Of(pid int) Owner { return o.of(o.proc, o.self.depth, pid, -1) }

// Peer returns who connected to a unix socket. A process that has ended is unknown, as it could be anyone's: a child of
// a container's program leaves its connection to its parent.
func (o *Owners) Peer(conn *net.UnixConn) Owner {
	unknown := Owner{UID: -1, Client: Unknown}
	peer, err := trust.PeerOf(conn)
	if err != nil {
		return unknown
	}
	unknown.UID = int(peer.UID)
	alive, done, err := trust.Alive(conn, peer.PID)
	if err != nil {
		return unknown
	}
	defer done()
	who := o.of(here, 0, peer.PID, int(peer.UID))
	if !alive() {
		return unknown
	}
	if o.self.depth > 0 {
		who.PID = 0 // in /proc below root, another process has that number
	}
	return who
}

// of returns whose a process in a /proc is, where this one is so many namespaces below. uid is its effective user, or -1
// for the one that /proc says.
func (o *Owners) of(proc string, depth, pid, uid int) Owner {
	who := Owner{UID: uid, Client: Unknown}
	if pid <= 0 || pid > maxPID {
		return who
	}
	buf, ok := owners.Get().(*[maxBytes]byte)
	if !ok {
		buf = new([maxBytes]byte)
	}
	defer owners.Put(buf)
	s, ok := parseStatus(read(proc, pid, "status", buf[:]))
	if !ok {
		return who
	}
	if who.PID = pid; uid < 0 {
		who.UID = s.uid
	}
	container, known := o.container(read(proc, pid, "cgroup", buf[:]))
	switch {
	case !known || who.UID < 0:
	case container != "" && container != o.own:
		who.Client = "uid " + strconv.Itoa(who.UID) + " in container " + container
	case who.UID != 0 && who.UID != os.Geteuid():
		who.Client = "uid " + strconv.Itoa(who.UID)
	case s.depth == 0 || container == o.own && s.depth <= depth:
		who.Client = ""
	}
	return who
}

// owners are buffers for files: the API needs one for each connection.
var owners sync.Pool

// container returns the first digits of the ID of the container by the text of /proc/PID/cgroup, "" for none. It is not
// known without the text, and if only a cgroup that is not visible has the name of a container. Of a container inside
// another it is the outer one.
func (o *Owners) container(text []byte) (id string, known bool) {
	known = len(text) > 0
	eachContainer(text, o.groups.Own(), func(m membership) bool {
		uid, visible := o.groups.Owner(m.controllers, string(m.path))
		switch {
		case visible && uid == 0:
			id, known = string(m.id[:shortDigits]), true
			return false
		case !visible && !below(m.path, "user@"):
			known = false
		}
		return true
	})
	return id, known
}

// below reports whether a folder on a path has a name that begins so.
func below(path []byte, name string) bool { return bytes.Contains(path, []byte("/"+name)) }
