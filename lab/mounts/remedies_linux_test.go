package mounts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/lab/mounts/ways"
	"github.com/stallspan/stallspan/test/slowdisk"
)

var (
	program  = flag.String("stallspan", "", "the built `program`; without it, it is built")
	followed = flag.Bool("followed", false, "follow the remedies, on a machine without other work: takes four minutes")
	heldOut  = flag.Bool("held-out", false, "use the file systems that nothing was tuned with")
	rounds   = flag.Int("rounds", 1, "how often each is measured; the medians are not printed, but every round")
)

const mib = 1 << 20

func TestMain(m *testing.M) {
	if slowdisk.Serve() || ways.Serve() {
		return
	}
	os.Exit(m.Run())
}

// storage is a file system that answers each request late.
type storage struct {
	delay time.Duration // a request
	size  int64         // of the file
}

// The limits of the remedies were chosen with the first ones. The others were not used before they were final.
var (
	known = []storage{
		{5 * time.Millisecond, 64 * mib}, {2 * time.Millisecond, 96 * mib}, {9 * time.Millisecond, 72 * mib},
		{20 * time.Millisecond, 64 * mib},
	}
	heldOuts = []storage{{3 * time.Millisecond, 80 * mib}, {14 * time.Millisecond, 64 * mib}}
)

// report has the parts of a window's report that are compared.
type report struct {
	Duration float64 `json:"duration_s"`
	Verdict  string  `json:"verdict"`
	Finding  string  `json:"finding"`
	Remedy   string  `json:"remedy"`
	Evidence string  `json:"evidence"`
	Bound    float64 `json:"speedup_bound"`
	Load     struct {
		Hit *float64 `json:"page_cache_hit_ratio"`
	} `json:"load"`
	Stall struct {
		Storage float64 `json:"storage_s"`
	} `json:"stall"`
	Mounts []struct {
		Type        string   `json:"type"`
		MeanWaiting *float64 `json:"requests_waiting_mean"`
	} `json:"mounts"`
}

// measured has the parts of stallspan bench load --json.
type measured struct {
	Ways []struct {
		How     string  `json:"how"`
		Cached  bool    `json:"from_page_cache"`
		Readers int     `json:"readers"`
		Rate    float64 `json:"bytes_per_second"`
	} `json:"ways"`
}

// rate is that of a way with one reader or with several, from storage.
func (m *measured) rate(how string, several bool) float64 {
	for _, w := range m.Ways {
		if w.How == how && !w.Cached && (w.Readers > 1) == several {
			return w.Rate
		}
	}
	return 0
}

// attempts is how often a load is tried. What was in the page cache at its begin is asked for 10 ms, which is too
// short on a busy machine.
const attempts = 5

// TestRemediesFollowed loads a file in a slow way, and then as the remedy says.
func TestRemediesFollowed(t *testing.T) {
	if !*followed {
		t.Skip("takes four minutes, and a machine without other work: -followed")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a FUSE file system")
	}
	tool := *program
	if tool == "" {
		tool = filepath.Join(t.TempDir(), "stallspan")
		build := exec.Command("go", "build", "-C", "../..", "-o", tool, ".")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: got %v, want no error: %s", err, out)
		}
	}
	all := known
	if *heldOut {
		all = heldOuts
	}
	for _, s := range all {
		for range *rounds {
			t.Run(fmt.Sprintf("%v-%dMiB", s.delay, s.size/mib), func(t *testing.T) { follow(t, tool, s) })
		}
	}
}

func follow(t *testing.T, tool string, s storage) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	disk, err := slowdisk.Open(ctx, slowdisk.Network, slowdisk.Options{Delay: s.delay, Size: 4 * s.size})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(disk.Dir, "model.safetensors")
	data := make([]byte, s.size)
	_, _ = rand.Read(data)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := disk.Slow(); err != nil {
		t.Fatal(err)
	}
	predicted := loads(ctx, t, tool, path)
	reports := map[string]*report{}
	for _, how := range []string{ways.Mapped, ways.One, ways.Several, ways.Small, ways.Large} {
		for range attempts {
			if reports[how] = window(ctx, t, tool, how, path); reports[how].Load.Hit != nil {
				break
			}
			t.Logf("%s: the page cache was not known in time: again", how)
		}
		r := reports[how]
		t.Logf("%s: %.2f s, %s (%s), %.2f s storage, at most %.1fx: %s | %s", how, r.Duration, r.Verdict, r.Evidence,
			r.Stall.Storage, r.Bound, r.Finding, r.Remedy)
		fast := how == ways.Several || how == ways.Large
		if !fast && r.Verdict != "storage_bound" && r.Verdict != "mixed" { // CPUs may be scarce
			t.Errorf("%s: got %s, want storage_bound", how, r.Verdict)
		}
	}
	for _, x := range []struct {
		remedy     string // its beginning; "" where FUSE gives no evidence for one
		slow, fast string
		predicted  float64
	}{
		{"Read the files with large read calls and several readers", ways.Mapped, ways.Several,
			predicted.rate("read", true) / predicted.rate("mmap", false)},
		{"Read the model ahead, or in several pieces at once", ways.One, ways.Several,
			predicted.rate("read", true) / predicted.rate("read", false)},
		{"", ways.Small, ways.Large, float64(ways.LargeRead) / ways.SmallRead}, // one request each
	} {
		before, after := reports[x.slow], reports[x.fast]
		gain := before.Duration / after.Duration
		t.Logf("RESULT %v %d MiB: %s to %s: predicted %.1fx, measured %.1fx; bound %.1fx", s.delay, s.size/mib, x.slow,
			x.fast, x.predicted, gain, before.Bound)
		if !strings.HasPrefix(before.Remedy, x.remedy) {
			t.Errorf("%s: got %q, want %q...", x.slow, before.Remedy, x.remedy)
		}
		if gain < x.predicted/2 || gain > 2*x.predicted {
			t.Errorf("%s to %s: measured %.1fx, predicted %.1fx", x.slow, x.fast, gain, x.predicted)
		}
	}
	for _, how := range []string{ways.One, ways.Several, ways.Small, ways.Large} {
		if strings.HasPrefix(reports[how].Remedy, "Read the files with large") {
			t.Errorf("%s, by calls: got %q", how, reports[how].Remedy)
		}
	}
}

// loads measures the ways to read the file.
func loads(ctx context.Context, t *testing.T, tool, path string) *measured {
	t.Helper()
	out, err := exec.CommandContext(ctx, tool, "bench", "load", path, "--json", "--force").Output()
	var m measured
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("stallspan bench load: %v: %s", err, out)
	}
	return &m
}

// window has a copy of this program load the file, which is in no cache, and returns the report of its window.
func window(ctx context.Context, t *testing.T, tool, how, path string) *report {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = pagecache.Forget(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), how+".json")
	// With the counters of FUSE, as systemd mounts them on other machines.
	script := `mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections; exec "$@"`
	run := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", script, "sh", tool, "run", "--quiet", "--", os.Args[0])
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
	return &r
}
