// Package locate finds out whether a span is from this machine, and from which process or container.
//
// A span is from this machine by the first line of this table that applies. "Another" means a value that differs from
// ours. An attribute that cannot be compared, because ours is unknown, does not apply.
//
//	assume_local is set                             local
//	container.id is found below root's /proc        local, that container
//	host.name is found there, with no container.id  local, that container
//	k8s.node.name is ours                           local
//	k8s.node.name is another                        of another host
//	host.id is ours                                 local
//	host.id is another machine-id                   of another host
//	host.name is ours                               local
//	any of the four is set                          of another host
//	none of them is set                             local
//
// A container that is found is here, whatever the other attributes are: its image may have a machine-id of its own, and
// its host.name is that of the pod. Docker names a container's host by the first 12 digits of its ID. Without a
// container.id, a host.name of 12 or 64 lower-case hexadecimal digits that is not ours is therefore looked up as a
// container. If it is not found, it counts like any other name.
//
// The order follows from how reliable the names are. A node's name is unique in its cluster and set on purpose, while
// machine-ids are cloned with disk images, and host names repeat from site to site. Clouds put the instance into
// host.id, other detectors the mainboard: only the form of a machine-id (32 hexadecimal digits) can show another
// machine. A host.name that differs decides nothing: it may be that of a container.
//
// Within this machine a span is from the first of these that exists, else from the whole host:
//
//	container.id and process.pid   the process with this number in that container, else as for the next line
//	container.id                   the container's first process
//	process.pid                    the process with this number in the root's /proc or in our own pid namespace. If
//	                               host.name (or without it host.id) does not show that the program runs outside of
//	                               any container, no other process may have that number in a namespace of its own.
//
// A host.name that has found a container counts as its container.id.
//
// Kernel threads, a process 1 without a container.id and processes that have ended make no spans.
package locate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// Who holds the attributes of a span and its resource that show where it was made. Zero values are unset.
type Who struct {
	HostName, HostID, NodeName, ContainerID string

	PID int // process.pid: the number in the process's own pid namespace
}

// Place is where on this machine a span was made.
type Place struct {
	PID    int    // as in /proc below root; 0: the whole host
	Cgroup string // its cgroup v2, as cgroup.ScopeOf returns it; "" to look it up
	Own    bool   // the cgroup contains that container and nothing else
}

// How long an answer is cached. A process ID that another process has got is noticed within foundFor.
const (
	foundFor = 10 * time.Second
	missFor  = 5 * time.Second
)

// Locator finds processes and containers of this machine. It is safe for concurrent use.
//
// It caches at most 2,048 answers for some seconds. Any other query reads a few small files of /proc. If these are not
// enough, it scans all processes: at most once a second, and for at most a fiftieth of the time. Queries that need a
// scan wait for it; cached ones do not. A container that is younger than the last scan is found up to a second late.
type Locator struct {
	proc     string // the folder
	self     self
	groups   *cgroup.View
	us       machine
	found    cache
	missed   cache
	began    time.Time // start of the monotonic clock of the caches
	scanning sync.Mutex
	seen     atomic.Pointer[table] // the last scan; nil before the first
	scanFrom atomic.Int64          // since began, in ns: no scan before
	buffers  sync.Pool             // see buffer
}

// New returns a Locator. root stands for "/" ("/hostfs" in a container); node is our k8s.node.name, "" if unknown.
// Files that cannot be read make answers less exact, and are no error.
func New(root, node string, assumeLocal bool) *Locator {
	proc := procOf(root)
	return &Locator{
		proc: proc, self: newSelf(proc), groups: cgroup.NewView(root), us: thisMachine(root, node, assumeLocal),
		began: time.Now(),
	}
}

// Find reports whether w is of this machine, and returns its place.
func (l *Locator) Find(w Who) (p Place, local bool) {
	local, outside := l.us.isLocal(&w)
	pid := w.PID
	if pid < 0 || pid > maxPID {
		pid = 0
	}
	if w.ContainerID != "" {
		if !mayBeID(w.ContainerID) {
			return Place{}, local
		}
		a := l.query(key{container: w.ContainerID, pid: int32(pid)})
		return a.place, local || a.here
	}
	if mayBeID(w.HostName) && l.us.compareName(w.HostName) != ours {
		if a := l.query(key{container: w.HostName, pid: int32(pid)}); a.here {
			return a.place, true
		}
	}
	if !local || pid <= 1 {
		return Place{}, local
	}
	return l.query(key{pid: int32(pid), outside: outside}).place, true
}

// query answers from the caches, or else from /proc.
func (l *Locator) query(k key) answer {
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
