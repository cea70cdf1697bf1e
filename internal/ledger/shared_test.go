package ledger

import (
	"math"
	"testing"
)

// TestPressureOfOthers: in a shared scope a job is not charged with the waiting of other jobs.
func TestPressureOfOthers(t *testing.T) {
	c := cell{dt: 1, busy: 0.3, some: 0.9, scopeCPU: 0.4, jobCPU: 0.05, queue: 0.1, queued: 16, reading: 4, working: 0.1,
		shared: true, leaders: 1, hasGPU: true, hasPressure: true, ownIO: true}
	if got := c.split(); got.storage > 0.02 {
		t.Errorf("%+v, want no storage stall: another job's disk is the one that is waited for", got)
	}
	between := c // two of its reads, while its own disk is idle, or as busy as the other
	between.queue, between.between, between.onDisk = 0, true, 0
	if got := between.split(); got.storage > 0.02 {
		t.Errorf("%+v, between two reads from an idle disk; want no storage stall", got)
	}
	between.queued = 0
	if got := between.split(); got.storage > 0.02 {
		t.Errorf("%+v, between two reads, while other jobs wait for no disk; want no storage stall", got)
	}
	between.onDisk, between.queued = 16, 16
	if got := between.split(); got.storage < 0.6 {
		t.Errorf("%+v, want a storage stall: its own disk is saturated", got)
	}
	c.queued = 0.1 // no disk explains it: the job is throttled
	if got := c.split(); got.storage < 0.6 {
		t.Errorf("%+v, want a storage stall: the job is throttled", got)
	}
	idling := c // while cores idle for another disk's I/O, and its own is idle or saturated
	idling.reading, idling.queued, idling.iowait, idling.onDisk = 0, 16, 1, 0.2
	if got := idling.split(); got.storage > 0.11 {
		t.Errorf("%+v, want little: cores idle for another job's disk", got)
	}
	idling.onDisk = 16
	if got := idling.split(); got.storage < 0.19 {
		t.Errorf("%+v, want a storage stall: cores idle for its own disk", got)
	}
	c.cached = true
	if got := c.split(); got.storage > 0.11 {
		t.Errorf("%+v, want little: most of its reads were from memory", got)
	}
	alone := cell{dt: 1, some: 1, scopeCPU: 0.3, jobCPU: 0.3, leading: 0.3, leaders: 1, shared: true, hasGPU: true,
		hasPressure: true, ownIO: true}
	if got := alone.split(); math.Abs(got.storage-0.7) > 1e-9 || math.Abs(got.cpu-0.3) > 1e-9 {
		t.Errorf("%+v, want no more than the one thread slept", got)
	}
}

// TestOwnIO: a job is charged in a shared scope only after I/O that it may have waited for.
func TestOwnIO(t *testing.T) {
	before := levels{readChars: 1, fetched: 2, stored: 5, disks: 100}
	for _, c := range []struct {
		name                              string
		readChars, fetched, stored, disks float64
		remote, want                      bool
	}{
		{name: "nothing"},
		{name: "nothing, with files on a network", remote: true},
		{name: "a read from a disk", readChars: 4096, fetched: 4096, stored: 4096, disks: 4096, want: true},
		{name: "a page of a mapped file", fetched: 4096, stored: 4096, disks: 4096, want: true},
		{name: "a pipe, or the page cache", readChars: 1 << 20},
		{name: "a network file system", readChars: 1 << 20, remote: true, want: true},
		{name: "the page cache, while a disk is at work", readChars: 1 << 20, disks: 4096, remote: true},
		{name: "a log", stored: 4096},
		{name: "a checkpoint", stored: 16 << 20, want: true},
	} {
		now := levels{readChars: before.readChars + c.readChars, fetched: before.fetched + c.fetched, stored: before.stored +
			c.stored, disks: before.disks + c.disks}
		if got := before.ownIO(now, c.remote); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
