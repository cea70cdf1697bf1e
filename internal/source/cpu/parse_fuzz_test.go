package cpu

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// coreLines matches the lines of cores, with which a text begins.
var coreLines = regexp.MustCompile(`^(cpu[^\n]*\n?)*`)

// FuzzParse compares arbitrary text with prometheus/procfs where both can parse it.
func FuzzParse(f *testing.F) {
	f.Add(string(stat(3, 5)))
	f.Add("cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu7 1 2 3 4 5 6 7 8 9 10 11\nintr 1\n")
	f.Add("cpu0 1 2 3\ncpux 1 2 3 4\ncpu1  1  2 3 4 ")
	f.Add("cpu0 922337203685477580 18446744073709551615 3 4 5\n")
	f.Add("cp")
	f.Fuzz(func(t *testing.T, text string) {
		root := t.TempDir()
		fixture.Write(t, root, "proc/stat", []byte(text))
		var got sample.Sample
		source := New(root)
		if err := source.Read(&got); err != nil {
			return
		}
		lines := coreLines.Find([]byte(text))
		if bytes.ContainsFunc(lines, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
			return // procfs accepts any white space
		}
		fixture.Write(t, root, "proc/stat", lines)
		fs, err := procfs.NewFS(root + "/proc")
		if err != nil {
			t.Fatal(err)
		}
		oracle, err := fs.Stat()
		if err != nil {
			return // procfs also reads the sum and guest times
		}
		last := map[string]sample.Core{} // duplicate core: procfs uses the last
		for _, core := range got.Cores {
			last[core.Name] = core
		}
		for number, want := range oracle.CPU {
			core, ok := last["cpu"+strconv.FormatInt(number, 10)]
			if !ok {
				continue // procfs accepts fewer than four fields, and signs
			}
			same(t, core.User, want.User)
			same(t, core.Nice, want.Nice)
			same(t, core.System, want.System)
			same(t, core.Idle, want.Idle)
			same(t, core.IOWait, want.Iowait)
			same(t, core.IRQ, want.IRQ)
			same(t, core.SoftIRQ, want.SoftIRQ)
			same(t, core.Steal, want.Steal)
			delete(last, core.Name)
		}
		for name := range last {
			t.Errorf("got %s, want no such core as in procfs", name)
		}
	})
}

// same compares with a float64 of seconds.
func same(t *testing.T, got time.Duration, want float64) {
	t.Helper()
	if math.Abs(got.Seconds()-want) > 1e-9*math.Max(1, want) {
		t.Errorf("got %v, want %v s as in procfs", got, want)
	}
}
