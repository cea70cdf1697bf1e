package scenario

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

const diskstats = `   7       0 loop0 575 1 757760 41243 12 3 96 7 0 1234 41250 0 0 0 0 2 1
 254       0 vda 10 0 20 30 40 0 50 60 0 70 80
`

func TestParseCounters(t *testing.T) {
	got, err := parseCounters(diskstats, "loop0")
	want := Counters{
		Read:  Direction{575, 757760 * 512, 41243 * time.Millisecond},
		Write: Direction{12, 96 * 512, 7 * time.Millisecond},
	}
	if err != nil || got != want {
		t.Errorf("parseCounters: got %+v, %v; want %+v", got, err, want)
	}
	if _, err := parseCounters(diskstats, "loop"); err == nil {
		t.Error("there is no loop")
	}
}

// did returns the counters of n operations of 1 KiB and 10 ms each.
func did(operations uint64) Direction {
	return Direction{operations, operations << 10, time.Duration(operations) * 10 * time.Millisecond}
}

// use returns what a report holds for the same.
func use(read, write Direction) *window.Report {
	return &window.Report{Facts: window.Facts{Disks: []window.DiskUse{{Name: "vda", ReadOperations: 9}, {
		Name: "loop0", ReadOperations: read.Operations, ReadBytes: read.Bytes, ReadTime: read.Time,
		WriteOperations: write.Operations, WriteBytes: write.Bytes, WriteTime: write.Time,
	}}}}
}

// Each direction is compared with its own counters.
func TestCompare(t *testing.T) {
	slow := func(d Direction) Direction { return Direction{d.Operations, d.Bytes, d.Time * 5 / 4} }
	none, exact := Direction{}, 0.0
	off := 0.2
	for what, c := range map[string]struct {
		foundRead, foundWrite Direction
		least, most           Counters
		operations, bytes     uint64
		read, write           *float64
	}{
		"exact":           {did(100), did(5), Counters{Read: did(100), Write: did(5)}, Counters{Read: did(100), Write: did(5)}, 0, 0, &exact, &exact},
		"between":         {did(100), did(5), Counters{Read: did(99), Write: did(5)}, Counters{Read: did(101), Write: did(6)}, 0, 0, &exact, &exact},
		"too few":         {did(100), did(5), Counters{Read: did(102), Write: did(5)}, Counters{Read: did(103), Write: did(5)}, 2, 2048, &exact, &exact},
		"too many":        {did(100), did(5), Counters{Read: did(98), Write: did(2)}, Counters{Read: did(99), Write: did(4)}, 2, 2048, &exact, &exact},
		"writes as reads": {did(105), none, Counters{Read: did(100), Write: did(5)}, Counters{Read: did(100), Write: did(5)}, 10, 10240, &exact, new(1.0)},
		"slow reads":      {did(100), did(5), Counters{Read: slow(did(100)), Write: did(5)}, Counters{Read: slow(did(100)), Write: did(5)}, 0, 0, &off, &exact},
		"slow writes":     {none, did(80), Counters{Write: slow(did(80))}, Counters{Write: slow(did(80))}, 0, 0, nil, &off},
		"fast writes":     {none, slow(did(80)), Counters{Write: did(80)}, Counters{Write: did(80)}, 0, 0, nil, new(0.25)},
	} {
		d := Device{Name: "loop0", Least: c.least, Most: c.most, OperationsError: 9}
		d.compare(use(c.foundRead, c.foundWrite))
		same := func(got, want *float64) bool {
			return got == nil && want == nil || got != nil && want != nil && near(*got, *want)
		}
		if d.OperationsError != c.operations || d.BytesError != c.bytes || !same(d.AwaitError, c.read) ||
			!same(d.WriteAwaitError, c.write) {
			t.Errorf("%s: got %+v, want errors %d, %d, %v, %v", what, d, c.operations, c.bytes, c.read, c.write)
		}
	}
	d := Device{Name: "loop0", Least: Counters{Read: did(105)}, Most: Counters{Read: did(105)}}
	if d.compare(&window.Report{}); d.OperationsError != 105 || d.idle() {
		t.Errorf("a disk that the report lacks: %+v", d)
	}
	d = Device{Name: "loop0"}
	if d.compare(use(none, none)); d.AwaitError != nil || d.WriteAwaitError != nil || !d.idle() {
		t.Errorf("a disk that did nothing: %+v", d)
	}
}

// Results of older versions have sums of reads and writes, and no time of writes.
func TestCompareSums(t *testing.T) {
	var d Device
	old := `{"name": "loop0", "operations": 1, "await_s": 3, "await_error": 0,
		"least": {"operations": 105, "bytes": 107520, "reads": 100, "read_ms": 1250},
		"most": {"operations": 106, "bytes": 107521, "reads": 100, "read_ms": 1250}}`
	if err := json.Unmarshal([]byte(old), &d); err != nil {
		t.Fatal(err)
	}
	if d.compare(use(did(100), did(5))); d.OperationsError+d.BytesError > 0 || *d.AwaitError != 0.2 ||
		d.WriteAwaitError != nil {
		t.Errorf("compare: got %+v, want no error but that of await, 0.2", d)
	}
	if d.compare(use(did(100), did(9))); d.OperationsError != 3 || d.BytesError != 109<<10-107521 {
		t.Errorf("four writes too many: %+v", d)
	}
	d.Least.Reads, d.Most.Reads = 0, 0
	if d.compare(use(did(0), did(105))); d.AwaitError != nil {
		t.Errorf("an await without reads: %+v", d)
	}
}
