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
		{"the same job's", at("b", "j", ModelLoad, 0, 40), false},
		{"a part of the same job's", at("b", "j", ModelLoad, 12, 14), false},
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
	steps, of := at("s", "", Steps, 10, 20), at("e", "", Steps, 12, 30)
	for pid, want := range map[int]bool{7: false, 8: true} {
		steps.PID, of.PID = 7, pid
		if got := steps.Overlaps(of, of.End.Mono); got != want {
			t.Errorf("steps of process 7 and those of process %d: got %v, want %v", pid, got, want)
		}
	}
	epoch := at("e", "j", Epoch, 5, 30)
	for _, c := range []struct {
		name string
		part *Window
		want bool
	}{
		{"its steps", at("s", "j", Steps, 5, 30), true},
		{"another program's", at("s", "k", Steps, 10, 20), false},
		{"those that began just before it", at("s", "j", Steps, 4, 20), true},
		{"those that began before it", at("s", "j", Steps, 0, 20), false},
		{"those that outlast it", at("s", "j", Steps, 20, 40), false},
		{"those after it", at("s", "j", Steps, 31, 31), false},
		{"an epoch", at("s", "j", Epoch, 10, 20), false},
	} {
		if got := epoch.Holds(c.part, epoch.End.Mono); got != c.want {
			t.Errorf("an epoch holds %s: got %v, want %v", c.name, got, c.want)
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
		r := &Report{Window: *load, Facts: Facts{From: c.from}}
		if r.CountOthers(others); r.Others != c.others || !slices.Equal(r.OthersByDisk, c.byDisk) {
			t.Errorf("from %v: %d others, %v; want %d, %v", c.from, r.Others, r.OthersByDisk, c.others, c.byDisk)
		}
	}
	if n := (&Report{Facts: Facts{From: []string{"sda"}}, OthersByDisk: []int{1}}).OthersOn("sdb"); n != 0 {
		t.Errorf("%d others on a disk that the window did not read from, want 0", n)
	}
}
