package window

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// The leaves come in any order, but a replay names the reset disks in the same order.
func TestResetDisksAreSorted(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := &sample.Sample{At: sample.Stamp{Mono: time.Duration(i+1) * time.Second}}
		for _, name := range []string{"sdb", "sda"} {
			d := sample.Disk{Name: name, Leaf: true, ReadIOs: 1}
			if i == 2 {
				d.Reset.Mono = time.Second
			}
			s.Disks = append(s.Disks, d)
		}
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &Window{Start: sample.Stamp{Mono: time.Second}, End: sample.Stamp{Mono: 3 * time.Second}}
	_, got := (&view{w, h, &Machine{Leaves: []string{"sdb", "sda"}}}).disks()
	if want := []string{"sda", "sdb"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestWorksWith: what happens to a disk that the window does not use is not a part of its report.
func TestWorksWith(t *testing.T) {
	b := Facts{Disks: []DiskUse{
		{Name: "sda", ReadBytes: 1 << 30, ReadOperations: 1 << 10}, {Name: "sdb", ReadBytes: 1 << 20, ReadOperations: 1},
	}}
	for name, c := range map[string]struct {
		from, under []string
		disk        string
		want        bool
	}{
		"the one that it read from":    {[]string{"sda"}, nil, "sda", true},
		"one that moved little":        {[]string{"sda"}, nil, "sdb", false},
		"one without I/O":              {[]string{"sda"}, nil, "sdc", false},
		"one of several":               {[]string{"sda", "sdb"}, nil, "sdb", true},
		"under the path":               {nil, []string{"sdb", "sdc"}, "sdb", true},
		"under the path, without I/O":  {nil, []string{"sdb", "sdc"}, "sdc", true},
		"busy, but not under the path": {nil, []string{"sdb", "sdc"}, "sda", false},
	} {
		b.From = c.from
		if got := b.worksWith(c.disk, c.under); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	b.From = []string{"sdb"}
	for opened, want := range map[string]bool{"sda": true, "sdb": false} {
		b.opened = []string{opened}
		if got := b.worksWith("sda", nil); got != want {
			t.Errorf("a busy disk, and files open on %s: %v, want %v", opened, got, want)
		}
	}
	b.From, b.opened = []string{"sda"}, nil
	for own, want := range map[uint64]bool{1 << 20: false, 1 << 29: true} {
		b.Own = &OwnIO{Read: own}
		if got := b.worksWith("sda", nil); got != want {
			t.Errorf("a disk that moved 1 GiB, and a job that read %d bytes: %v, want %v", own, got, want)
		}
	}
}

// TestCeilings: a disk that reads faster in a window than ever before has not shown that it can do no more.
func TestCeilings(t *testing.T) {
	for name, c := range map[string]struct {
		before    []sample.Ceiling
		now       float64
		near, far bool
	}{
		"faster than ever before":   {[]sample.Ceiling{{Disk: "sda", Read: 50 << 20}}, 101 << 20, false, false},
		"from the window alone":     {nil, 100 << 20, false, false},
		"at its ceiling":            {[]sample.Ceiling{{Disk: "sdb", Read: 1 << 40}, {Disk: "sda", Read: 101 << 20, Full: 101 << 20}}, 101 << 20, true, false},
		"with a peak in the window": {[]sample.Ceiling{{Disk: "sda", Read: 101 << 20, Full: 101 << 20}}, 300 << 20, true, true},
		"by one reader at a time":   {[]sample.Ceiling{{Disk: "sda", Read: 101 << 20}}, 101 << 20, false, false},
		"more without a queue":      {[]sample.Ceiling{{Disk: "sda", Read: 300 << 20, Full: 101 << 20}}, 300 << 20, false, true},
	} {
		w := &Window{End: sample.Stamp{Mono: 10 * time.Second}, Ceilings: c.before}
		disks := []DiskUse{{Name: "sda", ReadBytes: 1000 << 20}}
		(&view{Window: w, machine: &Machine{Ceilings: []sample.Ceiling{{Disk: "sda", Read: c.now}}}}).addCeilings(disks)
		if d := &disks[0]; d.NearCeiling() != c.near || d.FarFromCeiling() != c.far {
			t.Errorf("%s: near %v, far %v; want %v, %v", name, d.NearCeiling(), d.FarFromCeiling(), c.near, c.far)
		}
	}
}

// Disks on which the job has files open are in front. It read from no disk that only others read.
func TestDisksOfOthers(t *testing.T) {
	devices := []device{{"sda", "", false, 900, 1000, s, false}, {"vda", "", false, 100, 1000, s, false}}
	for open, want := range map[string][2]string{
		"vda": {"vda", "vda"}, "": {"sda", "sda vda"}, "sdz": {"sda", "sda vda"},
	} {
		r := slow(t, devices, 8*s, 100, func(b *bench) { b.machine.Devices = [][]string{strings.Fields(open)} })
		if got := [2]string{r.Disks[0].Name, strings.Join(r.From, " ")}; got != want {
			t.Errorf("files open on %q: got %q, want %q", open, got, want)
		}
	}
}
