package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// The finding names what explains the waiting, and the remedy does not contradict it.
func TestSlowStorage(t *testing.T) {
	disk := window.DiskUse{Name: "vda", ReadBytes: 4 << 20, ReadOperations: 1024, ReadTime: 80 * time.Millisecond}
	loop := window.DiskUse{
		Name: "loop1", ReadBytes: 4 << 20, ReadOperations: 1024, ReadTime: 8 * time.Second, QueueDepth: 0.8,
	}
	limited := func(kind sample.LimitKind) *window.SlowDevice {
		limit := sample.Limit{
			Device: "vda", Cgroup: "/jobs/a", Control: sample.IOMax, ReadBytes: 100 << 20, WriteBytes: 8 << 20,
			Reads: 400, Writes: 1,
		}
		return &window.SlowDevice{DiskUse: disk, Limit: &window.Limited{Limit: limit, Kind: kind}}
	}
	for name, c := range map[string]struct {
		change          func(*window.Report)
		finding, remedy string
		workers         bool
	}{
		"a disk": {
			func(r *window.Report) { r.SlowDevice = &window.SlowDevice{DiskUse: disk} },
			": 4 MiB were read from vda by all programs (1024 reads of 4 KiB; each took 78 us on average; queue depth 0.0).", "Read ahead with more workers", true,
		},
		"a disk with a long tail": {
			func(r *window.Report) {
				slow := disk
				slow.ReadLatency = &window.Latency{Operations: 1024, P50: 40e3, P99: 180e6, Max: 210e6}
				r.SlowDevice = &window.SlowDevice{DiskUse: slow}
			},
			"each took 78 us on average, and one in a hundred over 180 ms; queue depth 0.0).", "Read ahead with more workers", true,
		},
		"a disk with the usual tail": {
			func(r *window.Report) {
				slow := disk
				slow.ReadLatency = &window.Latency{Operations: 1024, P50: 70e3, P99: 300e3, Max: 400e3}
				r.SlowDevice = &window.SlowDevice{DiskUse: slow}
			},
			"each took 78 us on average; queue depth 0.0).", "Read ahead with more workers", true,
		},
		"a disk with few operations": {
			func(r *window.Report) {
				slow := disk
				slow.ReadLatency = &window.Latency{Operations: 150, P50: 70e3, P99: 30e6, Max: 40e6}
				r.SlowDevice = &window.SlowDevice{DiskUse: slow}
			},
			"each took 78 us on average; queue depth 0.0).", "Read ahead with more workers", true,
		},
		"a layer": {
			func(r *window.Report) {
				r.SlowDevice = &window.SlowDevice{DiskUse: loop, Layer: true, Below: []window.DiskUse{disk}}
			}, "(1024 reads of 4 KiB; each took 7.81 ms on average; queue depth 0.8; below it: vda 78 us).",
			"Keep the data in memory or move it", false,
		},
		"a limit on bytes read": {
			func(r *window.Report) { r.SlowDevice = limited(sample.ReadBytesLimit) },
			": reads from vda are limited to 100 MiB/s by io.max of cgroup /jobs/a.",
			"Raise the limit that io.max of cgroup /jobs/a sets on vda (100 MiB/s), or keep", false,
		},
		"a limit on reads": {
			func(r *window.Report) { r.SlowDevice = limited(sample.ReadsLimit) },
			": reads from vda are limited to 400 operations/s by io.max", "(400 operations/s)", false,
		},
		"a limit on bytes written": {
			func(r *window.Report) { r.SlowDevice = limited(sample.WriteBytesLimit) },
			": writes to vda are limited to 8 MiB/s by io.max", "(8 MiB/s)", false,
		},
		"a limit on writes": {
			func(r *window.Report) { r.SlowDevice = limited(sample.WritesLimit) },
			": writes to vda are limited to 1 operation/s by io.max", "(1 operation/s)", false,
		},
		"nothing": {
			func(r *window.Report) { r.NoDevice = true },
			", but no device of this machine explains it: 4 MiB were read from vda by all programs (1024 reads of 4 KiB; each " +
				"took 78 us on average; queue depth 0.0; 80 ms in all).",
			"Find what holds its reads and writes back", false,
		},
		"nothing, with a file server": {
			func(r *window.Report) {
				r.NoDevice, r.Mounts = true, []sample.Mount{{Point: "/data", Type: "nfs4", Source: "filer:/export"}}
			}, ", but no device of this machine explains it: files in use are on /data (nfs4 ",
			"Keep the data in memory or move it", false,
		},
		"a file server": {
			func(r *window.Report) {
				r.Disks, r.Mounts = nil, []sample.Mount{{Point: "/data", Type: "nfs4", Source: "filer:/export"}}
			}, ": files in use are on /data (nfs4 from filer:/export), which is on no disk of this machine.",
			"Keep the data in memory or move it", false,
		},
	} {
		r := &window.Report{
			Facts:     window.Facts{Scope: window.Process, Disks: []window.DiskUse{disk}, From: []string{"vda"}},
			Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 5},
		}
		r.Kind = window.Epoch
		divide(r, window.Shares{Storage: 0.8, CPU: 0.2})
		c.change(r)
		if got := Finding(r); !strings.Contains(got, c.finding) {
			t.Errorf("%s: got %q, want %q", name, got, c.finding)
		}
		if got := Remedy(r); !strings.Contains(got, c.remedy) || strings.Contains(got, "workers") != c.workers {
			t.Errorf("%s: got %q, want %q, with workers %v", name, got, c.remedy, c.workers)
		}
	}
}

// TestLatencyInJSON: the keys are as in docs/report.md, and absent where operations are not timed.
func TestLatencyInJSON(t *testing.T) {
	d := newDisk(&window.DiskUse{Name: "vda", ReadLatency: &window.Latency{
		Operations: 5, P50: 2 * time.Millisecond, P99: 180 * time.Millisecond, Max: 250 * time.Millisecond, Estimated: true}})
	text, err := json.Marshal(d)
	want := `"read_latency":{"operations":5,"p50_s":0.002,"p99_s":0.18,"max_s":0.25,"estimated":true}`
	if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "write_latency") {
		t.Errorf("got %s, %v; want %s and no writes", text, err, want)
	}
}

// What the kernel does not count is in no sentence and no JSON, and no remedy follows from it.
func TestUntimedDisk(t *testing.T) {
	disk := window.DiskUse{Name: "vda", ReadBytes: 4 << 20, ReadOperations: 1024,
		Lacks: sample.LacksReadTime | sample.LacksQueue | sample.LacksIOTicks}
	r := &window.Report{
		Facts:     window.Facts{Scope: window.Process, Disks: []window.DiskUse{disk}, From: []string{"vda"}},
		Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 5},
	}
	r.Kind = window.Epoch
	divide(r, window.Shares{Storage: 0.8, CPU: 0.2})
	want := "(1024 reads of 4 KiB; the kernel does not count how long they took)"
	if got := Finding(r); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Remedy(r); strings.Contains(got, "workers") {
		t.Errorf("got %q, want nothing that needs to know the queue", got)
	}
	text, err := json.Marshal(newDisk(&disk))
	for _, key := range []string{"await", "queue_depth", "busy_ratio"} {
		if err != nil || strings.Contains(string(text), key) {
			t.Errorf("got %s, %v; want no %s", text, err, key)
		}
	}
	disk.Lacks = 0
	if text, err := json.Marshal(newDisk(&disk)); err != nil || !strings.Contains(string(text), `"queue_depth":0,"busy_ratio":0`) {
		t.Errorf("an idle one: got %s, %v; want zeros", text, err)
	}
}
