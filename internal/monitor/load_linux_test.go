package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/window"
)

const mib = 1 << 20

// coldFile returns a file on a disk without a page in memory. It skips the test if the kernel does not show that.
func coldFile(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if held, err := pagecache.Look("", path); err != nil || !held.Known || held.Cached > 0 {
		t.Skipf("needs a temporary folder on a disk, and a kernel that shows its page cache: %+v, %v", held, err)
	}
	return path
}

// A load of a cold file, and of the same file when it is warm, say so, and say it again when they are replayed. A
// machine that is short of memory takes pages back at any moment, and a busy one is late to look at who reads, so each
// has a few tries.
func TestLoads(t *testing.T) {
	const size = 16 * mib
	path := coldFile(t, size)
	p := newTape(t)
	m := p.ofThisProcess()
	under, err := m.sources.Disks.Under(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		hit        float64
		prepare    func() error
	}{
		{"cold", "none of its 16 MiB", 0, func() error { return forget(path) }},
		{"warm", "all of its 16 MiB", 1, func() error { _, err := os.ReadFile(path); return err }},
	} {
		var problems []string
		for try := 0; try == 0 || len(problems) > 0 && try < 4; try++ {
			problems = nil
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			r := loaded(t, m, path, 1200*time.Millisecond<<try)
			cold := c.hit == 0
			if r.Load.Size != size || !r.Load.HasHit || r.Load.Hit != c.hit || r.Load.Estimated {
				problems = append(problems, fmt.Sprintf("%+v", r.Load))
			}
			if !slices.Equal(r.Seen.Under, under.Disks) {
				problems = append(problems, fmt.Sprintf("on %v, want %v", r.Seen.Under, under.Disks))
			}
			if !strings.Contains(explain.Finding(r), c.want) {
				problems = append(problems, explain.Finding(r))
			}
			own := slices.ContainsFunc(r.Load.Readers, func(x window.Reader) bool {
				return x.PID == os.Getpid() && x.Own && x.Name != ""
			})
			if len(under.Disks) > 0 && own != cold {
				problems = append(problems, fmt.Sprintf("read by %+v", r.Load.Readers))
			}
			if len(under.Disks) > 0 && cold &&
				(!slices.Equal(r.From, under.Disks) || !r.Disks[0].Under || r.Disks[0].ReadCeiling == 0) {
				problems = append(problems, fmt.Sprintf("from %v, %+v", r.From, r.Disks))
			}
		}
		if len(problems) > 0 {
			t.Errorf("%s: got %q, want no differences", c.name, problems)
		}
	}
	m.Jobs.Unfollow("job")
	m.Stop()
	p.replaysTheSame()
}

// loaded is the report of a load of about this length, in which this process reads a file. Who reads is known if the
// scans of all processes at both ends take less than a tenth of the length. The one at its end is begun by another load
// shortly before, because the end waits for it for 100 ms only.
func loaded(t *testing.T, m *Monitor, path string, length time.Duration) *window.Report {
	t.Helper()
	w := window.Window{Kind: window.ModelLoad, Model: "m", Path: path, PID: os.Getpid(), Job: "job"}
	begin := func() string {
		id, err := m.Windows.Begin(w, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	end := func(id string) *window.Report {
		r, err := m.Windows.End(id, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	id := begin()
	time.Sleep(length / 12) // for the scan of all processes: what they read before it is unknown
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for range 12 { // longer than a second, in which processes are looked at once
		time.Sleep(length / 12)
		m.Tick()
	}
	other := begin()
	time.Sleep(length / 30)
	r := end(id)
	end(other)
	return r
}

func forget(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(pagecache.Forget(file), file.Close())
}
