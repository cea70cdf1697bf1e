package explain

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Limits of the remedies for mounts without a disk of this machine.
const (
	manyOperations = 100     // from which their mean says something
	wholeRead      = 0.5     // share of the largest useful read below which reads are small
	usefulRead     = 1 << 17 // bytes: the kernel's read-ahead, beyond which larger reads gain less
	mountExplains  = 0.5     // share of the storage stall that the operations of a mount must have taken
	queueShare     = 0.3     // share of their time that operations wait to be sent, from which one connection is too few
	sentAgain      = 60.0    // seconds until a request is sent again, by default: more waiting has other causes
)

// busiestMount returns the mount on which operations took longest, if these explain the wait for storage; else nil.
func (x *situation) busiestMount() *window.MountUse {
	if !x.storage || len(x.MountUses) == 0 || len(x.Disks) > 0 {
		return nil
	}
	u := &x.MountUses[0]
	wait := x.Storage.Seconds() / float64(max(1, len(x.GPUIDs)))
	if u.Partial || u.Has&sample.HasMountRequests == 0 || u.All().Time.Seconds() < mountExplains*wait {
		return nil
	}
	return u
}

// mountIdles reports whether a mount without a disk answers one request after another, where that is known. In a load
// the leading thread often reads itself: then twice the workers are twice none, and a replay of them says nothing.
func (x *situation) mountIdles() bool {
	if !x.storage || len(x.Mounts) == 0 || len(x.Disks) > 0 {
		return false
	}
	for i := range x.MountUses {
		u := &x.MountUses[i]
		if u.Time().Seconds() >= deepQueue*x.Duration().Seconds() {
			return false
		}
	}
	return true
}

func (x *situation) readMountAhead() string {
	switch w := x.WhatIf; {
	case helps(twiceWorkers(x.Report)):
		return x.moreWorkers()
	case w != nil && helps(w.TwoWorkers):
		return fmt.Sprintf("%s: two readers would make it up to %s faster; storage without waiting, %s.", x.ahead(),
			times(w.TwoWorkers), x.noStorage())
	}
	return x.ahead() + ": " + x.without("without any waiting") + "."
}

// mapped reports whether the job maps files of a mount.
func (x *situation) mapped() bool {
	return x.storage && len(x.Mounts) > 0 && len(x.Disks) == 0 && x.Fetch != nil && x.Fetch.Mapped()
}

func (x *situation) readEagerly() string {
	return fmt.Sprintf("Read the files with large read calls and several readers instead of mapping them, or copy "+
		"them to a local disk first: %s came from %s by page faults, which wait for one piece after another "+
		"(its read calls returned %s); %s.",
		Size(x.Fetch.Bytes), x.Mounts[0].Point, Size(x.Fetch.Called), x.without("without waiting"))
}

// smallReads reports whether the reads of a mount are much smaller than useful.
func (x *situation) smallReads() bool {
	u := x.busiestMount()
	return u != nil && u.Read.Operations >= manyOperations && u.Read.Time >= u.Other.Time+u.Write.Time &&
		float64(u.Read.Bytes/u.Read.Operations) < wholeRead*float64(largestUseful(u))
}

// largestUseful is the size of a read beyond which larger ones gain little.
func largestUseful(u *window.MountUse) uint64 {
	if u.ReadSize > 0 {
		return min(u.ReadSize, usefulRead)
	}
	return usefulRead
}

func (x *situation) readLarger() string {
	u := x.busiestMount()
	return fmt.Sprintf("Read larger pieces, or read ahead: %s answered %s; it can answer reads of %s; %s.",
		named(u), operations(u, &u.Read, "reads", "read", true), Size(max(u.ReadSize, usefulRead)),
		x.without("without any waiting"))
}

// queued reports whether requests of a mount wait long to be sent, or to be sent for the last time.
func queued(u *window.MountUse) bool {
	if u == nil || u.Has&sample.HasMountTransport == 0 {
		return false
	}
	all := u.All()
	return all.Queue > 0 && all.Queue.Seconds() >= queueShare*all.Time.Seconds()
}

// unsent is the share of their time that a mount's requests waited to be sent.
func unsent(u *window.MountUse) string {
	all := u.All()
	return percent(all.Queue.Seconds() / all.Time.Seconds())
}

// unanswered reports whether a mount's time goes to requests that were sent again. The kernel counts the time before
// that as waiting to be sent.
func (x *situation) unanswered() bool {
	u := x.busiestMount()
	return queued(u) && float64(u.Retransmissions)*sentAgain >= u.All().Queue.Seconds()/2
}

func (x *situation) findUnanswered() string {
	u := x.busiestMount()
	return fmt.Sprintf("Find out why %s did not answer, such as a lost connection or a server that hung: %s, and %s of "+
		"the requests' time passed before they were sent for the last time; %s.", named(u),
		count(u.Retransmissions, "retransmission"), unsent(u),
		x.without("without any waiting"))
}

// oneConnection reports whether requests wait for the only connection of a mount.
func (x *situation) oneConnection() bool {
	u := x.busiestMount()
	return queued(u) && u.Connections == 1 && u.All().Operations >= manyOperations
}

// fewSlots reports whether requests wait for a slot of a mount's session. What is sent with a request to read is
// short, so that a connection does not hold it up; and connections share the slots.
func (x *situation) fewSlots() bool {
	u := x.busiestMount()
	return queued(u) && u.Session && u.All().Operations >= manyOperations && u.Read.Queue >= u.Write.Queue
}

func (x *situation) allowMore() string {
	u := x.busiestMount()
	return fmt.Sprintf("Allow more requests to %s at once: they waited %s of their time for one of its session's slots, "+
		"which more connections would share; raise max_session_slots of the module nfs here, and the server's limit; %s.",
		named(u), unsent(u), x.without("without any waiting"))
}

func (x *situation) connectMore() string {
	u := x.busiestMount()
	return fmt.Sprintf("Mount %s with more connections (nconnect=8): it has one, and requests waited %s of their time "+
		"to be sent; %s.", named(u), unsent(u), x.without("without any waiting"))
}

// manyFiles reports whether a mount spends its time on metadata.
func (x *situation) manyFiles() bool {
	u := x.busiestMount()
	return u != nil && u.Other.Operations >= manyOperations && u.Other.Time > u.Read.Time+u.Write.Time
}

func (x *situation) packFiles() string {
	u := x.busiestMount()
	return fmt.Sprintf("Pack the files into fewer and larger ones (shards), or copy them to a local disk: %s answered "+
		"%s, and only %s; %s.", named(u),
		operations(u, &u.Other, "metadata operations", "metadata operation", false),
		count(u.Read.Operations, "read"), x.without("without any waiting"))
}

// named is "server:/export at /data".
func named(u *window.MountUse) string {
	if u.Source == "" || u.Source == u.Type || u.Source == "none" {
		return u.Point
	}
	return u.Source + " at " + u.Point
}
