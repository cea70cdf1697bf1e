package locate

import (
	"bytes"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/trust"
)

// Unknown is the client of all processes for which the kernel does not vouch.
const Unknown = "an unknown process"

// Owner is whose a process is, as the kernel vouches for it while the process lives.
type Owner struct {
	PID int // in /proc below root; 0 for none that is visible there
	UID int // effective; -1 for unknown
	// Client is "" for root outside of all containers, and for root and this program's user where this program is. It is
	// "uid N in container ID" in another container, "uid N" for another user, and else Unknown. See window.Window, Client.
	Client string
}

// Owners find out whose processes are. They are safe for concurrent use.
//
// A container is what a cgroup of root is named after (ContainerID), with root's cgroups alone above: users may name
// cgroups of their own like any container. A process that is root in a namespace of processes below this program's, and
// in no such cgroup, is in a container of a kind that is not known. All users without a number here have the same.
type Owners struct {
	Groups *cgroup.View // read-only

	proc string
	self status // this process in proc
	own  string // its container
	user int
	// unmapped is the number of each user who has none here, such as the machine's users in a container of a user; or -1.
	unmapped int
}

// NewOwners returns the Owners of the processes in /proc below root.
func NewOwners(root string) *Owners {
	o := &Owners{Groups: cgroup.NewView(root), proc: procOf(root), user: os.Geteuid(), unmapped: unmappedUser()}
	buf := new([maxBytes]byte)
	o.self, _ = parseStatus(readFile(o.proc+"/self/status", buf[:]))
	var known bool
	if o.own, known = o.container(readFile(o.proc+"/self/cgroup", buf[:])); !known {
		o.own = Unknown // no process is where this one is
	}
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

// of returns whose a process in a /proc is, where this one is so many namespaces below. uid is its effective user, or
// -1 for the one that /proc says.
func (o *Owners) of(proc string, depth, pid, uid int) Owner {
	who := Owner{UID: uid, Client: Unknown}
	if pid <= 0 || pid > maxPID {
		return who
	}
	// The open folder stays that of the process: the number may be another one's between two files.
	folder, err := unix.Open(proc+"/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return who
	}
	defer func() { _ = unix.Close(folder) }()
	process := here + "/self/fd/" + strconv.Itoa(folder) + "/"
	buf, ok := owners.Get().(*[maxBytes]byte)
	if !ok {
		buf = new([maxBytes]byte)
	}
	defer owners.Put(buf)
	text := readFile(process+"status", buf[:])
	s, ok := parseStatus(text)
	if !ok {
		return who
	}
	if who.PID = pid; uid < 0 {
		_, who.UID = kernfile.UserIDs(text)
	}
	container, known := o.container(readFile(process+"cgroup", buf[:]))
	with := container == o.own && s.depth <= depth // where this program is, and not further in
	switch {
	case !known || who.UID < 0 || who.UID == o.unmapped:
	case who.UID == 0 && container == "" && s.depth == 0, with && (who.UID == 0 || who.UID == o.user):
		who.Client = ""
	case container != "":
		who.Client = "uid " + strconv.Itoa(who.UID) + " in container " + container
	case who.UID != 0:
		who.Client = "uid " + strconv.Itoa(who.UID)
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
	eachContainer(text, o.Groups.Own(), func(m membership) bool {
		ours, visible := o.Groups.OfRoot(m.controllers, string(m.path))
		switch {
		case visible && ours == bytes.Count(m.path, []byte("/")):
			id, known = string(m.id[:shortDigits]), true
			return false
		case !visible && !bytes.Contains(m.path, []byte("/user@")):
			known = false
		}
		return true
	})
	return id, known
}

// unmappedUser returns the number that stands for each user who has none in this program's namespace of users, or -1 if
// all have one.
func unmappedUser() int {
	fields := strings.Fields(kernfile.Text(here + "/self/uid_map"))
	if len(fields) == 0 || slices.Equal(fields, []string{"0", "0", "4294967295"}) {
		return -1
	}
	uid, err := strconv.Atoi(kernfile.Text(here + "/sys/kernel/overflowuid"))
	if err != nil {
		return defaultOverflow
	}
	return uid
}

// defaultOverflow is DEFAULT_OVERFLOWUID of include/linux/highuid.h.
const defaultOverflow = 65534
