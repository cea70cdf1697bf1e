package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/ceiling"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// What was measured of a disk is known to the first window already, is in a recording, and goes away with the disk.
func TestMeasured(t *testing.T) {
	root := fixture.Root(t, "disk_laptop")
	size := filepath.Join(root, "sys/class/block/nvme0n1/size")
	resize := func(sectors string) {
		if err := os.WriteFile(size, []byte(sectors), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resize("1000\n")
	baselines := filepath.Join(t.TempDir(), "baseline.db")
	file := ceiling.PathNextTo(baselines)
	one := ceiling.Measured{
		Disk: "nvme0n1", Identity: ceiling.Identify(root, "nvme0n1"), Read: 3e9, Await: 8e-5, At: time.Now(),
	}
	if err := ceiling.Store(file, one); err != nil {
		t.Fatal(err)
	}
	p := newTape(t)
	m, err := New(Config{
		Root: root, Journal: p.w, Slow: config.Slow{Baseline: baselines}, Interval: time.Second, Reports: p.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	// The first look may come too late where the machine is slow.
	want := []sample.Ceiling{{Disk: "nvme0n1", Read: 3e9, Full: 3e9, ReadAwait: 80 * time.Microsecond}}
	if got := ceilings(m, want); !slices.Equal(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil || !slices.Equal(r.Ceilings, want) {
		t.Errorf("got %+v, %v, want the ceilings %+v", r, err, want)
	}
	one.Read = 4e9
	if err := ceiling.Store(file, one); err != nil {
		t.Fatal(err)
	}
	m.measured.Read()
	want[0].Read, want[0].Full = 4e9, 4e9
	if got := ceilings(m, want); !slices.Equal(got, want) {
		t.Errorf("measured again: got %+v, want %+v", got, want)
	}
	resize("2000\n") // another disk
	m.measured.Read()
	if got := ceilings(m, nil); len(got) != 0 {
		t.Errorf("another disk: %+v", got)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := func(err error) bool { return strings.Contains(err.Error(), file) }
	for end := time.Now().Add(time.Minute); !slices.ContainsFunc(m.Problems(), named); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a damaged file: got the problems %v, want one with its name", m.Problems())
		}
		m.measured.Read() // as in ceilings
	}
	m.Stop()
	p.replaysTheSame()
}

// ceilings waits until a monitor knows what is wanted.
func ceilings(m *Monitor, want []sample.Ceiling) (got []sample.Ceiling) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		m.measured.Read() // one that began before the file changed may end later
		m.Tick()
		if got = m.Collect().Ceilings; slices.Equal(got, want) {
			break
		}
	}
	return got
}
