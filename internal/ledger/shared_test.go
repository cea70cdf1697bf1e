package ledger

import (
	"math"
	"testing"
)

// TestStrangersPressure: in a scope that a job shares it is not charged with what others wait for.
func TestStrangersPressure(t *testing.T) {
	c := cell{dt: 1, busy: 0.3, some: 0.9, scopeCPU: 0.4, jobCPU: 0.05, queue: 0.1, queued: 16, reading: 4, working: 0.1,
		shared: true, leaders: 1, hasGPU: true, hasPressure: true, ownIO: true}
	if got := c.split(); got.storage > 0.02 {
		t.Errorf("%+v, where a stranger's disk is what is waited for", got)
	}
	between := c // two of its reads, while its own disk has nothing to do, or as much as the other
	between.queue, between.between, between.onDisk = 0, true, 0
	if got := between.split(); got.storage > 0.02 {
		t.Errorf("%+v, between two reads from a disk that keeps up", got)
	}
	between.queued = 0
	if got := between.split(); got.storage > 0.02 {
		t.Errorf("%+v, between two reads, where strangers wait for what is no disk", got)
	}
	between.onDisk, between.queued = 16, 16
	if got := between.split(); got.storage < 0.6 {
		t.Errorf("%+v, where its own disk is the one that does not keep up", got)
	}
	c.queued = 0.1 // no disk explains it: the job is throttled above its own
	if got := c.split(); got.storage < 0.6 {
		t.Errorf("%+v, where the job is throttled", got)
	}
	idling := c // while cores idle for another disk's I/O, and its own keeps up or does not
	idling.reading, idling.queued, idling.iowait, idling.onDisk = 0, 16, 1, 0.2
	if got := idling.split(); got.storage > 0.11 {
		t.Errorf("%+v, where cores idle for a stranger's disk", got)
	}
	idling.onDisk = 16
	if got := idling.split(); got.storage < 0.19 {
		t.Errorf("%+v, where cores idle for its own disk", got)
	}
	c.cached = true
	if got := c.split(); got.storage > 0.11 {
		t.Errorf("%+v, where most of what it read lay in memory", got)
	}
	alone := cell{dt: 1, some: 1, scopeCPU: 0.3, jobCPU: 0.3, leading: 0.3, leaders: 1, shared: true, hasGPU: true, hasPressure: true, ownIO: true}
	if got := alone.split(); math.Abs(got.storage-0.7) > 1e-9 || math.Abs(got.cpu-0.3) > 1e-9 {
		t.Errorf("%+v, want no more than the one thread slept", got)
	}
}

// TestOwnIO: only what a job may have waited for lets it be charged with what is waited for where it shares.
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
		now := levels{readChars: before.readChars + c.readChars, fetched: before.fetched + c.fetched, stored: before.stored + c.stored, disks: before.disks + c.disks}
		if got := before.ownIO(now, c.remote); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
