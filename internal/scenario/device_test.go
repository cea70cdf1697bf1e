package scenario

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

const diskstats = `   7       0 loop0 575 1 757760 41243 12 3 96 7 0 1234 41250 0 0 0 0 2 1
 254       0 vda 10 0 20 30 40 0 50 60 0 70 80
`

func TestParseCounters(t *testing.T) {
	got, err := parseCounters(diskstats, "loop0")
	if want := (Counters{Operations: 587, Bytes: (757760 + 96) * 512, Reads: 575, ReadMillis: 41243}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseCounters(diskstats, "loop"); err == nil {
		t.Error("there is no loop")
	}
}

func TestCompare(t *testing.T) {
	use := window.DiskUse{Name: "loop0", ReadOperations: 100, WriteOperations: 5, ReadBytes: 4096, ReadTime: time.Second}
	r := &window.Report{Disks: []window.DiskUse{{Name: "vda", ReadOperations: 9}, use}}
	exact := Counters{Operations: 105, Bytes: 4096, Reads: 100, ReadMillis: 1000}
	for _, c := range []struct {
		least, most       Counters
		operations, bytes uint64
		await             float64
	}{
		{exact, exact, 0, 0, 0},
		{Counters{104, 0, 99, 990}, Counters{106, 8192, 101, 1011}, 0, 0, 0},
		{Counters{107, 8192, 100, 1250}, Counters{109, 9000, 100, 1250}, 2, 4096, 0.2},
		{Counters{100, 4000, 100, 500}, Counters{103, 4090, 100, 500}, 2, 6, 1},
	} {
		d := Device{Name: "loop0", Least: c.least, Most: c.most}
		d.compare(r)
		if d.OperationsError != c.operations || d.BytesError != c.bytes || !near(d.AwaitError, c.await) {
			t.Errorf("between %+v and %+v: %+v", c.least, c.most, d)
		}
	}
	d := Device{Name: "loop0", Least: exact, Most: exact}
	if d.compare(&window.Report{}); d.OperationsError != 105 {
		t.Errorf("a disk that the report lacks: %+v", d)
	}
}
