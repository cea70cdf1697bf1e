package sampling

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// However many problems there were, a new one is reported, of any source.
func TestProblemsNeverStop(t *testing.T) {
	var p Problems
	var seen uint64
	for i := range 1000 {
		p.Note("process", fmt.Errorf("process %d", i))
		fresh, next := p.Since(seen)
		if seen = next; len(fresh) != 1 || fresh[0].Error() != fmt.Sprintf("process: process %d", i) {
			t.Fatalf("problem %d: got %v new, want it", i, fresh)
		}
	}
	p.Note("pressure", errors.New("the cgroup is gone"))
	if fresh, _ := p.Since(seen); len(fresh) != 1 || fresh[0].Error() != "pressure: the cgroup is gone" {
		t.Errorf("another source: got %v, want its problem", fresh)
	}
	all := p.All()
	if len(all) != maxProblems+2 || all[maxProblems-1].Error() != "process: process 999" ||
		!strings.Contains(all[len(all)-1].Error(), fmt.Sprint(1000-maxProblems)) {
		t.Errorf("got %v, want the last %d, and how many were before", all, maxProblems)
	}
	if got := p.Failures()["process"]; got.Count != 1000 {
		t.Errorf("got %d failures, want 1000", got.Count)
	}
}

// A problem that goes on keeps its place, and is reported once.
func TestProblemsThatGoOn(t *testing.T) {
	var p Problems
	p.Note("disk", errors.New("steady"))
	for i := range 100 {
		p.Note("disk", fmt.Errorf("passing %d", i))
		p.Note("disk", errors.New("steady"))
	}
	if first := p.All()[0]; first.Error() != "disk: steady" {
		t.Errorf("got %v first, want the problem that goes on", first)
	}
	_, next := p.Since(0)
	p.Note("disk", errors.New("passing 99"))
	if fresh, _ := p.Since(next); len(fresh) != 0 {
		t.Errorf("got %v as new, want nothing", fresh)
	}
}
