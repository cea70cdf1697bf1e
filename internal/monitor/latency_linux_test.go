//go:build amd64 || arm64

package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// direct reads blocks of a file past the page cache.
func direct(t *testing.T, path string, blocks int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(page) }()
	for i := range blocks {
		if _, err := unix.Pread(fd, page, int64(i%256)*4096); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that answers most reads at once and one in twenty after 60 ms: the report of a window has the percentiles,
// the finding says more than the mean, and a replay says the same.
func TestLongTail(t *testing.T) {
	if err := bpf.Supported("").Of(bpf.Disks); err != nil {
		t.Skip("needs BPF for latency: ", err)
	}
	for _, need := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("needs FUSE and loop devices: ", err)
		}
	}
	const delay = 60 * time.Millisecond
	d, err := slowdisk.Open(t.Context(), slowdisk.Parallel, slowdisk.Options{Size: 64 * mib, Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(d.Dir, "file")
	if err := os.WriteFile(path, make([]byte, mib), 0o600); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	p := newTape(t)
	m, err := New(Config{Journal: p.w, Reports: p.add, Latency: true})
	if err != nil {
		t.Fatal(err)
	}
	direct(t, path, 1) // before the window
	m.Tick()
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, PID: os.Getpid(), Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	direct(t, path, 600)
	m.Tick()
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	direct(t, path, 30)
	m.Tick()
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	var use *window.DiskUse
	for i := range r.Disks {
		if r.Disks[i].Name == d.Device {
			use = &r.Disks[i]
		}
	}
	if use == nil || use.ReadLatency == nil {
		t.Fatalf("got %+v, want the latency of reads from %s", r.Disks, d.Device)
	}
	l := use.ReadLatency
	mean, _ := sample.Await(use.ReadTime, use.ReadOperations)
	t.Logf("%d reads: mean %.4f s, %+v", use.ReadOperations, mean, *l)
	// Some virtual machines miss a tracepoint now and then.
	if l.Estimated || l.Operations > use.ReadOperations || l.Operations+5 < use.ReadOperations {
		t.Errorf("got %+v, want all %d reads, exactly", *l, use.ReadOperations)
	}
	if l.P50 >= delay/4 || l.P99 < delay*9/10 || l.Max < l.P99 {
		t.Errorf("got %+v, want half of the reads far below %v, and one in a hundred above it", *l, delay)
	}
	text := explain.Finding(r)
	if strings.Contains(text, " from "+d.Device) && strings.Contains(text, "on average") &&
		l.P99.Seconds() > 4*mean && !strings.Contains(text, "one in a hundred over") {
		t.Errorf("got %q, want the slowest of a hundred reads, too", text)
	}
	m.Jobs.Unfollow("job")
	m.Stop()
	p.replaysTheSame()
}
