package pressure

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestParse(t *testing.T) {
	const averages = " avg10=0.00 avg60=0.00 avg300=0.00"
	for text, want := range map[string]struct {
		some, full time.Duration
		ok         bool
	}{
		"some" + averages + " total=5\nfull" + averages + " total=3\n":  {5 * µs, 3 * µs, true},
		"some" + averages + " total=5":                                  {5 * µs, -1, true},
		"irq" + averages + " total=9\nsome" + averages + " total=5\n":   {5 * µs, -1, true},
		"full" + averages + " total=5\n":                                {},
		"some" + averages + " total=5\nfull" + averages + " total=-3\n": {},
		"some" + averages + " total=\n":                                 {},
		"some" + averages + "\n":                                        {},
		"some total=9223372036854775\n":                                 {9223372036854775 * µs, -1, true},
		"some total=9223372036854776\n":                                 {},
		"some total=99999999999999999999999999\n":                       {},
		"": {},
	} {
		some, full, ok := parse([]byte(text))
		if ok != want.ok || ok && (some != want.some || full != want.full) {
			t.Errorf("%q: got %v, %v, %v; want %+v", text, some, full, ok, want)
		}
	}
}

// FuzzKernelText compares possible text of the kernel with prometheus/procfs.
func FuzzKernelText(f *testing.F) {
	f.Add(uint64(7436124), uint64(0), uint16(37), true)
	f.Add(uint64(math.MaxUint64), uint64(1), uint16(0), false)
	f.Add(uint64(math.MaxInt64/1000), uint64(math.MaxInt64/1000), uint16(10000), true)
	f.Fuzz(func(t *testing.T, some, full uint64, average uint16, hasFull bool) {
		line := "%s avg10=%d.%02d avg60=0.00 avg300=0.00 total=%d\n"
		text := fmt.Sprintf(line, "some", average/100, average%100, some)
		if hasFull {
			text += fmt.Sprintf(line, "full", average/100, average%100, full)
		}
		fits := some <= math.MaxInt64/1000 && (!hasFull || full <= math.MaxInt64/1000)
		if got := againstProcfs(t, []byte(text)); got != fits {
			t.Errorf("%q: got %v, want %v", text, got, fits)
		}
	})
}

// FuzzParse compares arbitrary text with prometheus/procfs where both can parse it.
func FuzzParse(f *testing.F) {
	f.Add([]byte("some avg10=0.37 avg60=0.74 avg300=0.79 total=7436124\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=2"))
	f.Add([]byte("full total=\nsome  total=18446744073709551615"))
	f.Fuzz(func(t *testing.T, text []byte) { againstProcfs(t, text) })
}

// againstProcfs reports whether parse accepts text, and fails if procfs finds other totals. procfs may reject the
// averages, which parse does not read.
func againstProcfs(t *testing.T, text []byte) bool {
	some, full, ok := parse(text)
	if some < 0 || full < -1 {
		t.Errorf("got %v, %v, want no negative total", some, full)
	}
	if !ok || bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		return ok // procfs accepts any white space
	}
	root := t.TempDir()
	fixture.Write(t, root, "proc/pressure/io", text)
	proc, err := procfs.NewFS(root + "/proc")
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := proc.PSIStatsForResource("io")
	if err != nil {
		return ok
	}
	check := func(name string, got time.Duration, want *procfs.PSILine) {
		if want == nil {
			want = &procfs.PSILine{}
		}
		if uint64(got/time.Microsecond) != want.Total {
			t.Errorf("%s: got %v, want %d us as procfs in %q", name, got, want.Total, text)
		}
	}
	check("some", some, oracle.Some)
	check("full", full, oracle.Full)
	return ok
}
