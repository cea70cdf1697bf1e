package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestFixtures(t *testing.T) {
	const ms = time.Millisecond
	for name, want := range map[string][]sample.Core{
		"cpu_laptop": {
			{Name: "cpu0", User: 15890 * ms, System: 6840 * ms, Idle: 1181160 * ms, IOWait: 150 * ms, SoftIRQ: 340 * ms, Steal: 110 * ms},
			{Name: "cpu1", User: 19140 * ms, System: 8130 * ms, Idle: 1175440 * ms, IOWait: 1870 * ms, SoftIRQ: 330 * ms, Steal: 70 * ms},
		},
		// A host of virtual machines: user includes guest time. Core 1 is offline.
		"cpu_hypervisor": {
			{Name: "cpu0", User: 5000 * ms, Nice: 300 * ms, System: 100 * ms, Idle: 9000 * ms, IOWait: 50 * ms, IRQ: 20 * ms, SoftIRQ: 10 * ms},
			{Name: "cpu2", User: 6000 * ms, Nice: 0, System: 110 * ms, Idle: 8000 * ms, IOWait: 60 * ms, IRQ: 30 * ms, SoftIRQ: 20 * ms},
		},
		// Linux 2.4 stops after idle.
		"cpu_old": {{Name: "cpu0", User: 10 * ms, Nice: 20 * ms, System: 30 * ms, Idle: 40 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			var got sample.Sample
			if err := New(fixture.Root(t, name)).Read(&got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Cores, want) {
				t.Errorf("got  %+v\nwant %+v", got.Cores, want)
			}
			if got.At.Wall.IsZero() {
				t.Error("got no stamp, want one")
			}
		})
	}
}

func TestThisMachine(t *testing.T) {
	var got sample.Sample
	if err := New("").Read(&got); err != nil {
		t.Skipf("no /proc/stat: %v", err)
	}
	if len(got.Cores) < 1 || len(got.Cores) < runtime.NumCPU()/2 {
		t.Errorf("got %d cores, want at least %d", len(got.Cores), runtime.NumCPU())
	}
	for _, core := range got.Cores {
		if core.Busy()+core.Idle == 0 {
			t.Errorf("%s: got no time, want some, at least idle", core.Name)
		}
	}
}

func TestChangingCores(t *testing.T) {
	root := t.TempDir()
	source := New(root)
	for _, cores := range []int{2, 128, 1, 2000, 3} {
		fixture.Write(t, root, "proc/stat", stat(cores, 300))
		var got sample.Sample
		if err := source.Read(&got); err != nil {
			t.Fatal(err)
		}
		if len(got.Cores) != cores {
			t.Fatalf("got %d cores, want %d", len(got.Cores), cores)
		}
		if last := got.Cores[cores-1]; last.Name != fmt.Sprintf("cpu%d", cores-1) || last.Steal != 80*time.Millisecond {
			t.Errorf("got last core %+v, want another", last)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		cores int
		want  string
	}{
		"empty":          {"", 0, "no line of a core"},
		"something else": {"hello\n", 0, "no line of a core"},
		"only the sum":   {"cpu  1 2 3 4\n", 0, "no line of a core"},
		"a broken line":  {"cpu0 1 2 3 4\ncpu1 1 x 3 4\ncpu2 1 2 3 4\n", 2, `"cpu1" is not the line of a core`},
		"too few":        {"cpu0 1 2 3\n", 0, "not the line of a core"},
		"a huge number":  {"cpu0 1 2 3 99999999999999999\n", 0, "not the line of a core"},
		"a huge name":    {"cpu99999999 1 2 3 4\n", 0, "not the line of a core"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			fixture.Write(t, root, "proc/stat", []byte(test.text))
			var got sample.Sample
			err := New(root).Read(&got)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v, want one line with %q", err, test.want)
			}
			if len(got.Cores) != test.cores {
				t.Errorf("got %d cores, want %d", len(got.Cores), test.cores)
			}
		})
	}
}

func TestMissingAndReplaced(t *testing.T) {
	root := t.TempDir()
	source := New(root)
	var got sample.Sample
	if err := source.Read(&got); err == nil || !strings.Contains(err.Error(), "check that") {
		t.Fatalf("got error %v, want one with advice", err)
	}
	fixture.Write(t, root, "proc/stat", stat(1, 1))
	if err := source.Read(&got); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "proc/stat"), filepath.Join(root, "proc/old")); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "proc/stat", stat(2, 1))
	got.Reset()
	if err := source.Read(&got); err != nil || len(got.Cores) != 2 {
		t.Errorf("after a new file: got %v, %d cores; want all", err, len(got.Cores))
	}
	if _, err := os.Stat(filepath.Join(root, "proc/stat")); err != nil {
		t.Fatal(err)
	}
}

// A reading allocates the path alone.
func TestReadAllocatesLittle(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/stat", stat(128, 300))
	source := New(root)
	var s sample.Sample
	tick := func() {
		s.Reset()
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if n := testing.AllocsPerRun(100, tick); n > 1 {
		t.Errorf("got %v allocations per reading, want one at most", n)
	}
}

// stat returns a /proc/stat with so many cores and interrupts.
func stat(cores, interrupts int) []byte {
	var b strings.Builder
	b.WriteString("cpu  9 9 9 9 9 9 9 9 0 0\n")
	for i := range cores {
		fmt.Fprintf(&b, "cpu%d 1234567 2345 345678 %d 5432 6 7 8 0 0\n", i, 987654321+i)
	}
	b.WriteString("intr 169990" + strings.Repeat(" 12345", interrupts) + "\nctxt 1\nbtime 2\n")
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	b.Run("host", func(b *testing.B) { benchmark(b, "") })
	for _, cores := range []int{2, 128} {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			root := b.TempDir()
			fixture.Write(b, root, "proc/stat", stat(cores, 1000))
			benchmark(b, root)
		})
	}
}

func benchmark(b *testing.B, root string) {
	source := New(root)
	var s sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		if err := source.Read(&s); err != nil {
			b.Fatal(err)
		}
	}
}
