// Package locate answers for a span: is it of this machine, and of which process or container here?
//
// A span is of this machine when it is so by the first line of this table that applies to it. "Another" is what differs
// from ours when both are known; an attribute that cannot be compared, as ours is unknown, decides nothing.
//
//	assume_local is set                          local
//	container.id is found below root's /proc     local, that container
//	host.name is found so, with no container.id  local, that container
//	k8s.node.name is ours                        local
//	k8s.node.name is another                     of another host
//	host.id is ours                              local
//	host.id is another machine-id                of another host
//	host.name is ours                            local
//	any of the four says anything                of another host
//	none of them says anything                   local
//
// A container that is found is here, whatever is said of it: its image may hold a machine-id of its own, and its
// host.name is the pod's. Docker names a container's host by the first 12 digits of its ID: without a container.id a
// host.name of 12 or 64 lower-case hexadecimal digits that is not ours is looked up as one. When that finds nothing, it
// says what any other name does.
//
// A node's name is unique in its cluster and given on purpose, while machine-ids are cloned with disk images and names
// of hosts repeat from site to site: hence the order. Clouds put the instance into host.id, others the mainboard: only
// what has the form of a machine-id (32 hexadecimal digits) can say that it is another one. A host.name that differs
// decides nothing: it may be a container's.
//
// Within this machine a span is of the first of these that is there, else of the whole host:
//
//	container.id and process.pid   the process that goes by this number in that container, else as for the next
//	container.id                   the container's first process
//	process.pid                    the process of this number in the root's /proc or in our own pid namespace. Where
//	                               host.name (or without it host.id) does not say that the program runs outside of any
//	                               container, no other process must go by that number in a namespace of its own.
//
// A host.name that has found a container counts as its container.id.
//
// A kernel thread, a process 1 without a container.id and a process that has ended make no spans.
package locate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// Who is what a span's attributes and resource say of where it was made. The zero values say nothing.
type Who struct {
	HostName, HostID, NodeName, ContainerID string

	PID int // process.pid: the number by which the process knows itself
}

// Place is where on this machine a span was made.
type Place struct {
	PID    int    // as in /proc below root; 0: the whole host
	Cgroup string // the cgroup v2 in which it waits, as cgroup.ScopeOf gives it; "" where it is to be looked up
	Own    bool   // the cgroup holds that container and nothing else
}

// How long an answer holds. A process ID that was given to another process is noticed within foundFor.
const (
	foundFor = 10 * time.Second
	missFor  = 5 * time.Second
)

// Locator knows this machine. Its methods may be called concurrently.
//
// What was found or missed is kept for some seconds, in at most 2,048 answers. Anything else costs a few small files of
// /proc; what those do not tell costs a scan of all processes, at most once a second and a fiftieth of the time. Calls
// that need a scan wait for it, those that find a kept answer do not. A container that is younger than the last scan is
// found up to a second late.
type Locator struct {
	proc     string // the folder
	self     self
	groups   *cgroup.View
	us       machine
	found    shelf
	missed   shelf
	began    time.Time // of the monotonic clock on which answers grow old
	scanning sync.Mutex
	seen     atomic.Pointer[table] // by the last scan; nil before
	scanFrom atomic.Int64          // since began, in ns: no scan before
	buffers  sync.Pool             // see buffer
}

// New makes a Locator. root stands for "/" ("/hostfs" in a container), node is our k8s.node.name, "" where unknown.
// What cannot be read, now or later, makes answers less exact and is no error.
func New(root, node string, assumeLocal bool) *Locator {
	proc := procOf(root)
	return &Locator{
		proc: proc, self: whoAmI(proc), groups: cgroup.NewView(root), us: thisMachine(root, node, assumeLocal),
		began: time.Now(),
	}
}

// Find tells whether w is of this machine, and where on it.
func (l *Locator) Find(w Who) (p Place, local bool) {
	local, outside := l.us.judge(&w)
	pid := w.PID
	if pid < 0 || pid > mostPID {
		pid = 0
	}
	if w.ContainerID != "" {
		if !mayBeID(w.ContainerID) {
			return Place{}, local
		}
		a := l.ask(key{container: w.ContainerID, pid: int32(pid)})
		return a.place, local || a.here
	}
	if mayBeID(w.HostName) && l.us.compareName(w.HostName) != ours {
		if a := l.ask(key{container: w.HostName, pid: int32(pid)}); a.here {
			return a.place, true
		}
	}
	if !local || pid <= 1 {
		return Place{}, local
	}
	return l.ask(key{pid: int32(pid), outside: outside}).place, true
}

// ask answers from what is kept, else from /proc.
func (l *Locator) ask(k key) answer {
	now := time.Since(l.began)
	if a, ok := l.found.get(&k, now); ok {
		return a
	}
	if a, ok := l.missed.get(&k, now); ok {
		return a
	}
	var a answer
	if k.container != "" {
		a = l.inContainer(k.container, int(k.pid), now)
	} else {
		a = l.byNumber(int(k.pid), k.outside)
	}
	if a.until == 0 {
		a.until = now + missFor
		if a.full {
			a.until = now + foundFor
		}
	}
	if a.full {
		l.found.put(&k, a, now)
	} else {
		l.missed.put(&k, a, now)
	}
	return a
}
