package netmount

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/lab/mounts/ways"
)

var program = flag.String("stallspan", "", "the built `program`, whose windows are tested")

// report has the parts of a window's report that are compared.
type report struct {
	Duration float64 `json:"duration_s"`
	Verdict  string  `json:"verdict"`
	Finding  string  `json:"finding"`
	Remedy   string  `json:"remedy"`
	Evidence string  `json:"evidence"`
	Stall    struct {
		Storage float64 `json:"storage_s"`
		CPU     float64 `json:"cpu_s"`
		Ready   float64 `json:"ready_s"`
		Other   float64 `json:"other_s"`
	} `json:"stall"`
	Load struct {
		Hit *float64 `json:"page_cache_hit_ratio"`
	} `json:"load"`
	Mounts []struct {
		Point  string      `json:"point"`
		Type   string      `json:"type"`
		Source string      `json:"source"`
		Read   *operations `json:"read"`
		Other  *operations `json:"other"`
		Again  *uint64     `json:"retransmissions"`
		Called *uint64     `json:"read_by_calls_bytes"`
	} `json:"mounts"`
}

type operations struct {
	Operations uint64  `json:"operations"`
	Bytes      uint64  `json:"bytes"`
	Time       float64 `json:"time_mean_s"`
	RoundTrip  float64 `json:"round_trip_mean_s"`
	Queue      float64 `json:"queue_mean_s"`
}

// window has a copy of this program read in a way, and returns its window's report.
func window(t *testing.T, how, path string) *report {
	t.Helper()
	out := filepath.Join(t.TempDir(), how+".json")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, *program, "run", "--quiet", "--", os.Args[0])
	run.Env = append(ways.Environ(how, path, out), "XDG_STATE_HOME="+t.TempDir())
	if text, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: got %v, want no error: %s", how, err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.2f s, %s (%s), storage %.2f, cpu %.2f, other %.2f s\n\t%s\n\t%s", how, r.Duration, r.Verdict, r.Evidence,
		r.Stall.Storage, r.Stall.CPU, r.Stall.Other, r.Finding, r.Remedy)
	for _, m := range r.Mounts {
		line, _ := json.Marshal(m)
		t.Logf("%s", line)
	}
	return &r
}

func forget(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := pagecache.Forget(file); err != nil {
		t.Fatal(err)
	}
}

// waited is how long some of the requests were at the server.
func waited(calls []Call) (total time.Duration) {
	var end time.Time
	for _, c := range calls { // in order of their arrival
		if c.Answered.After(end) {
			from := c.Arrived
			if end.After(from) {
				from = end
			}
			total, end = total+c.Answered.Sub(from), c.Answered
		}
	}
	return total
}

// check compares a window's report with the log between the mount and its server.
func check(t *testing.T, s *Share, how string, r *report, began time.Time) {
	t.Helper()
	calls := s.Log(began)
	log, served := sums(calls), waited(calls).Seconds()
	t.Logf("the server's: %d reads of %d bytes, %d others; it had some to answer for %.2f s", log[Read].operations,
		log[Read].bytes, log[Other].operations, served)
	if r.Verdict != "storage_bound" && r.Verdict != "mixed" {
		t.Errorf("%s: got %s, want storage_bound", how, r.Verdict)
	}
	// What is read ahead, or by another thread, is waited for in part: meanwhile the program copies what came before. It
	// also waits while requests are on their way, and while the kernel takes in their answers.
	ahead := 0.0
	if how != ways.Small && how != ways.Files {
		ahead = r.Duration - r.Stall.Storage - r.Stall.CPU - r.Stall.Ready - r.Stall.Other
	}
	if low := 0.85*served - ahead; r.Stall.Storage < low || r.Stall.Storage > r.Duration {
		t.Errorf("%s: got a storage stall of %.2f of %.2f s, want at least %.2f", how, r.Stall.Storage, r.Duration, low)
	}
	if len(r.Mounts) == 0 || r.Mounts[0].Point != s.Dir || r.Mounts[0].Source != "127.0.0.1:/" || r.Mounts[0].Read == nil {
		t.Fatalf("%s: got the mounts %+v, want %s with reads", how, r.Mounts, s.Dir)
	}
	read := r.Mounts[0].Read
	if read.Operations != log[Read].operations || read.Bytes != log[Read].bytes {
		t.Errorf("%s: got %d reads of %d bytes, want %d of %d", how, read.Operations, read.Bytes, log[Read].operations,
			log[Read].bytes)
	}
	if again := r.Mounts[0].Again; again == nil || *again != log[Read].again+log[Other].again {
		t.Errorf("%s: got %v retransmissions, want %d", how, again, log[Read].again+log[Other].again)
	}
}

// TestWindowsOfRealMounts reads from a mount in several ways, each in a window.
func TestWindowsOfRealMounts(t *testing.T) {
	if *program == "" {
		t.Skip("needs the built program: -stallspan")
	}
	for _, version := range []string{"3", "4.2"} {
		t.Run(version, func(t *testing.T) {
			files := map[string]int64{"model.safetensors": 24 * mib}
			for i := range 110 {
				files[fmt.Sprintf("many/%03d.jpg", i)] = 20 << 10
			}
			s := open(t, version, "", files)
			s.Delay(Read, 40*time.Millisecond)
			s.Delay(Other, 20*time.Millisecond)
			path := filepath.Join(s.Dir, "model.safetensors")
			for _, x := range []struct{ how, path, remedy string }{
				{ways.Mapped, path, "Read the files with large read calls and several readers"},
				{ways.One, path, "Read the model ahead, or in several pieces at once"},
				{ways.Several, path, "Keep the model's file in memory"},
				{ways.Small, path, "Read larger pieces"},
				{ways.Large, path, "Read the model ahead, or in several pieces at once"},
				{ways.Files, filepath.Join(s.Dir, "many"), "Pack the files"},
			} {
				if x.how != ways.Files {
					forget(t, x.path)
				}
				began := time.Now()
				r := window(t, x.how, x.path)
				check(t, s, x.how, r, began)
				if !strings.HasPrefix(r.Remedy, x.remedy) {
					t.Errorf("%s: got the remedy %q, want %q...", x.how, r.Remedy, x.remedy)
				}
			}
		})
	}
}

// set changes a setting of the kernel for a test.
func set(t *testing.T, file, value string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(value), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, before, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestQueuesOfRealMounts has requests wait in the client, for each of three causes, and follows the remedies for two.
func TestQueuesOfRealMounts(t *testing.T) {
	if *program == "" {
		t.Skip("needs the built program: -stallspan")
	}
	if !knows("nfs") {
		t.Skip("the kernel has no client of NFS, or its module is not loaded")
	}
	const entries, slots = "/proc/sys/sunrpc/tcp_max_slot_table_entries", "/sys/module/nfs/parameters/max_session_slots"
	read := func(t *testing.T, version, options, how string, lost int) (r *report) {
		r = &report{}
		t.Run("read", func(t *testing.T) { // unmounts: another mount of the same server would share its session
			s := open(t, version, options, map[string]int64{"model.safetensors": 16 * mib})
			path := filepath.Join(s.Dir, "model.safetensors")
			s.Delay(Read, 300*time.Millisecond) // much more than an emulated processor takes
			forget(t, path)
			s.Fail(lost, false)
			began := time.Now()
			r = window(t, how, path)
			check(t, s, how, r, began)
		})
		return r
	}
	t.Run("connection", func(t *testing.T) {
		set(t, entries, "2") // requests on one connection
		before := read(t, "3", "", ways.Direct, 0)
		if want := "Mount 127.0.0.1:/ at "; !strings.HasPrefix(before.Remedy, want) {
			t.Errorf("got the remedy %q, want %q...", before.Remedy, want)
		}
		after := read(t, "3", "nconnect=8", ways.Direct, 0)
		t.Logf("RESULT nconnect=8: %.1f s, then %.1f s", before.Duration, after.Duration)
		if after.Duration > before.Duration/1.3 {
			t.Errorf("got %.1f s with eight connections, and %.1f s with one", after.Duration, before.Duration)
		}
	})
	t.Run("session", func(t *testing.T) {
		set(t, slots, "2")
		before := read(t, "4.1", "", ways.Direct, 0)
		if want := "Allow more requests to 127.0.0.1:/ at "; !strings.HasPrefix(before.Remedy, want) {
			t.Errorf("got the remedy %q, want %q...", before.Remedy, want)
		}
		connected := read(t, "4.1", "nconnect=8", ways.Direct, 0)
		set(t, slots, "64")
		after := read(t, "4.1", "", ways.Direct, 0)
		t.Logf("RESULT max_session_slots=64: %.1f s, then %.1f s; with nconnect=8 in its place %.1f s", before.Duration,
			after.Duration, connected.Duration)
		if after.Duration > before.Duration/1.3 {
			t.Errorf("got %.1f s with 64 slots, and %.1f s with 2", after.Duration, before.Duration)
		}
	})
	t.Run("lost", func(t *testing.T) {
		r := read(t, "3", "timeo=30,retrans=2", ways.One, 6)
		if want := "Find out why 127.0.0.1:/ at "; !strings.HasPrefix(r.Remedy, want) {
			t.Errorf("got the remedy %q, want %q...", r.Remedy, want)
		}
	})
}

// TestWindowOf9p reads from a mount without counters. lab/kernels has a device for it.
func TestWindowOf9p(t *testing.T) {
	if *program == "" {
		t.Skip("needs the built program: -stallspan")
	}
	if tags, _ := filepath.Glob("/sys/bus/virtio/drivers/9pnet_virtio/virtio*/mount_tag"); len(tags) < 2 {
		t.Skip("needs a second device of 9p, as lab/kernels has it")
	}
	dir := t.TempDir()
	if err := unix.Mount("again", dir, "9p", unix.MS_RDONLY, "trans=virtio,version=9p2000.L,msize=8192"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	began := time.Now()
	r := window(t, ways.One, filepath.Join(dir, *program))
	if r.Verdict != "storage_bound" && r.Verdict != "mixed" || r.Stall.Storage < r.Duration/3 {
		t.Errorf("got %s with %.2f s of %.2f s waiting for storage", r.Verdict, r.Stall.Storage, time.Since(began).Seconds())
	}
	if len(r.Mounts) != 1 || r.Mounts[0].Point != dir || r.Mounts[0].Type != "9p" || r.Mounts[0].Read != nil {
		t.Errorf("got the mounts %+v, want %s without counters", r.Mounts, dir)
	}
	if want := "files in use are on " + dir + " (9p from again)"; !strings.Contains(r.Finding, want) {
		t.Errorf("got the finding %q, want %q in it", r.Finding, want)
	}
}
