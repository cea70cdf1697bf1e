package window

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// MountUse is what all programs did on one file system without a disk of this machine, in a window.
type MountUse struct {
	sample.Mount

	Read, Write, Other MountDone
	Retransmissions    uint64
	Timeouts           uint64
	Called             uint64        // bytes that read calls returned
	Waiting            time.Duration // requests without an answer x time, from samples

	Connections int    // to the server; 0 if unknown
	ReadSize    uint64 // bytes of the largest read request; 0 if unknown
	Session     bool   // requests need slots of a session, which all connections share

	Has     sample.MountFields
	Partial bool // the file system was mounted in the window, or its counters restarted
}

// MountDone are the operations of one class. Times are sums over operations.
type MountDone struct {
	Operations, Bytes      uint64
	Queue, RoundTrip, Time time.Duration
}

// Mean returns the mean time of an operation, if it is known.
func (d *MountDone) Mean() (mean float64, ok bool) { return sample.Await(d.Time, d.Operations) }

// All returns all operations together.
func (u *MountUse) All() (all MountDone) {
	for _, d := range []*MountDone{&u.Read, &u.Write, &u.Other} {
		all.Operations, all.Bytes = all.Operations+d.Operations, all.Bytes+d.Bytes
		all.Queue, all.RoundTrip, all.Time = all.Queue+d.Queue, all.RoundTrip+d.RoundTrip, all.Time+d.Time
	}
	return all
}

// Time is how long all operations took, or how long requests waited, where only that is known.
func (u *MountUse) Time() time.Duration { return max(u.All().Time, u.Waiting) }

// mountUses returns the growth of the counters of mounts, first of that on which operations took longest.
func (v *view) mountUses(mounts []sample.Mount) (uses []MountUse) {
	for _, m := range mounts {
		if c := countersOf(v.machine.Counted, &m); c != nil {
			uses = append(uses, v.mountUse(m, c))
		}
	}
	slices.SortStableFunc(uses, func(x, y MountUse) int { return cmp.Compare(y.Time(), x.Time()) })
	return uses
}

// busiestFirst sorts mounts in the order of their uses.
func busiestFirst(mounts []sample.Mount, uses []MountUse) []sample.Mount {
	place := func(m *sample.Mount) int {
		i := slices.IndexFunc(uses, func(u MountUse) bool { return u.ID == m.ID && u.Time() > 0 })
		if i < 0 {
			return len(uses)
		}
		return i
	}
	slices.SortStableFunc(mounts, func(x, y sample.Mount) int { return cmp.Compare(place(&x), place(&y)) })
	return mounts
}

// countersOf returns the counters of a mount: those of the same device number. In a container its point and source may
// be others.
func countersOf(all []sample.MountCounters, m *sample.Mount) *sample.MountCounters {
	for i := range all {
		if m.Major == 0 && all[i].Minor == m.Minor {
			return &all[i]
		}
	}
	return nil
}

func (v *view) mountUse(m sample.Mount, c *sample.MountCounters) MountUse {
	u := MountUse{Mount: m, Has: c.Has, Connections: c.Connections, ReadSize: c.ReadSize, Session: c.Session}
	grown := func(first history.Series, all []history.Delta) {
		if !v.history.BetweenAll(first, c.ID, v.from(), v.to(), all) {
			clear(all)
			u.Partial = true
		}
		u.Partial = u.Partial || slices.ContainsFunc(all, func(d history.Delta) bool { return d.Reset })
	}
	if c.Has&sample.HasMountOperations != 0 {
		var read, write [5]history.Delta
		var other [7]history.Delta
		grown(history.MountReads, read[:])
		grown(history.MountWrites, write[:])
		grown(history.MountOthers, other[:])
		u.Read, u.Write = mountDone(&read), mountDone(&write)
		u.Other = mountDone(&[5]history.Delta{other[0], {}, other[1], other[2], other[3]})
		u.Retransmissions, u.Timeouts = uint64(other[4].Value), uint64(other[5].Value)
		u.Called = uint64(other[6].Value)
	}
	if c.Has&sample.HasMountWaiting != 0 {
		var waiting [1]history.Delta
		grown(history.MountWaiting, waiting[:])
		u.Waiting = seconds(waiting[0].Value)
	}
	return u
}

func mountDone(d *[5]history.Delta) MountDone {
	return MountDone{
		Operations: uint64(d[0].Value), Bytes: uint64(d[1].Value),
		Queue: seconds(d[2].Value), RoundTrip: seconds(d[3].Value), Time: seconds(d[4].Value),
	}
}

// Fetch is how a window's job got what came from a file system without a disk.
type Fetch struct {
	Bytes  uint64 // that came from the server
	Called uint64 // that the job's read calls returned, for any file
}

// Mapped reports whether nearly all of it came by page faults.
func (f *Fetch) Mapped() bool {
	return f.Bytes >= MinFetched && float64(f.Called) < MappedShare*float64(f.Bytes)
}

// calls returns how the job got its data from the mounts in use. The kernel does not count what comes from a FUSE server:
// there, it is by how much a load's file grew in the page cache, if that is half of it or more.
func (v *view) calls(of *Facts) *Fetch {
	if len(of.Mounts) == 0 || len(of.Disks) > 0 || v.machine.Target.Job == "" || v.machine.NoJobReads ||
		v.StartEdge == nil || v.EndEdge == nil { // without edges, what read calls returned is known for a minute
		return nil
	}
	called, known := v.between(history.JobReadChars, v.machine.Target.Job)
	if !known || called.Reset {
		return nil
	}
	f := Fetch{Called: uint64(called.Value)}
	own, counted := v.between(history.JobReadBytes, v.machine.Target.Job)
	for i := range of.MountUses {
		u := &of.MountUses[i]
		if u.Partial || u.Has&sample.HasMountRequests == 0 {
			continue
		}
		fetched := u.Read.Bytes // by any program
		if counted && own.Value > 0 {
			fetched = min(fetched, uint64(own.Value))
		}
		if u.Has&sample.HasMountCalled != 0 && float64(u.Called) >= MappedShare*float64(fetched) {
			fetched = 0 // some process reads it with calls: which one maps it is not known
		}
		f.Bytes += fetched
	}
	// A smaller part of the file may have been read by calls, and be extrapolated.
	if at := &v.Seen; f.Bytes == 0 && at.HasCached && at.HasAfter &&
		float64(at.After) >= float64(at.Cached)+minGrown*float64(at.Size) {
		f.Bytes = at.After - at.Cached
	}
	if f.Bytes == 0 {
		return nil
	}
	return &f
}
