package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestOverlaps(t *testing.T) {
	at := func(id, job string, k Kind, from, to time.Duration) *Window {
		return &Window{ID: id, Job: job, Kind: k, Start: sample.Stamp{Mono: from}, End: sample.Stamp{Mono: to}}
	}
	load := at("a", "j", ModelLoad, 10, 20)
	for _, c := range []struct {
		name  string
		other *Window
		want  bool
	}{
		{"itself", load, false},
		{"another job's", at("b", "k", ModelLoad, 15, 40), true},
		{"another job's around it", at("b", "k", Custom, 0, 40), true},
		{"the same job's", at("b", "j", ModelLoad, 0, 40), true},
		{"its run", at("b", "j", Custom, 0, 40), false},
		{"its epoch", at("b", "j", Epoch, 12, 14), false},
		{"the one before", at("b", "k", ModelLoad, 0, 10), false},
		{"the one after", at("b", "k", ModelLoad, 20, 30), false},
		{"hardly", at("b", "k", ModelLoad, 1900, 3000), false},
	} {
		if got := load.Overlaps(c.other, c.other.End.Mono); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	long := at("x", "", ModelLoad, 0, 1000)
	if long.Overlaps(at("y", "", ModelLoad, 995, 2000), 2000) {
		t.Error("an overlap of 5 counts, want at least a tenth of the shorter one: 100")
	}
	other := at("b", "k", ModelLoad, 10, 20)
	others := []Other{{other, 20, []string{"sdb", "sda"}}, {other, 20, []string{"sdb"}}, {load, 20, []string{"sda"}}}
	for _, c := range []struct {
		from   []string
		others int
		byDisk []int
	}{
		{[]string{"sda"}, 1, []int{1}},
		{[]string{"sda", "sdb", "sdc"}, 2, []int{1, 2, 0}},
	} {
		r := &Report{Window: *load, From: c.from}
		if r.CountOthers(others); r.Others != c.others || !slices.Equal(r.OthersByDisk, c.byDisk) {
			t.Errorf("from %v: %d others, %v; want %d, %v", c.from, r.Others, r.OthersByDisk, c.others, c.byDisk)
		}
	}
	if n := (&Report{From: []string{"sda"}, OthersByDisk: []int{1}}).OthersOn("sdb"); n != 0 {
		t.Errorf("%d others on a disk that the window did not read from, want 0", n)
	}
}
