package window

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// situations has one for every line of the table, in its order; what is not said is of a window of ten seconds, with a
// GPU, that reads 50 MiB/s from a disk.
func situations() []func(*Report, *shares, *Machine) {
	bound := func(v Verdict, more func(*Report, *shares, *Machine)) func(*Report, *shares, *Machine) {
		return func(r *Report, s *shares, m *Machine) {
			r.Verdict = v
			*s = map[Verdict]shares{
				GPUBound: {busy: 1}, StorageBound: {busy: 0.4, storage: 0.6}, CPUBound: {busy: 0.4, cpu: 0.6},
				Mixed: {busy: 0.4, storage: 0.35, cpu: 0.25}, Unknown: {busy: 0.3, other: 0.7},
			}[v]
			if more != nil {
				more(r, s, m)
			}
		}
	}
	return []func(*Report, *shares, *Machine){
		bound(Unknown, func(r *Report, _ *shares, _ *Machine) { r.Scope, r.GPUIDs = Host, nil }),
		bound(GPUBound, nil),
		bound(CPUBound, func(r *Report, _ *shares, _ *Machine) {
			r.Kind, r.Load = ModelLoad, Load{Size: 1, Hit: 1, HasHit: true}
		}),
		bound(StorageBound, func(r *Report, _ *shares, _ *Machine) { r.Kind, r.Disks[0].WriteBytes = Checkpoint, 1<<40 }),
		bound(StorageBound, func(r *Report, _ *shares, _ *Machine) {
			r.Kind, r.Others, r.others, r.From = ModelLoad, 2, []int{2}, []string{"sda"}
		}),
		bound(StorageBound, func(r *Report, _ *shares, _ *Machine) { r.Kind, r.Disks[0].ReadCeiling = ModelLoad, 1<<30 }),
		bound(StorageBound, func(r *Report, _ *shares, _ *Machine) {
			r.Kind, r.Disks[0].ReadCeiling, r.Disks[0].QueueDepth = ModelLoad, 1<<30, deepQueue
		}),
		bound(Mixed, nil),
		bound(StorageBound, func(r *Report, _ *shares, _ *Machine) {
			r.Ceilings, r.Disks[0].ReadCeiling = []sample.Ceiling{{Disk: "sda", Read: 60 << 20}}, 60<<20
		}),
		bound(CPUBound, func(r *Report, _ *shares, _ *Machine) { r.GPUIDs = nil }),
		bound(CPUBound, func(r *Report, _ *shares, _ *Machine) { r.CPUUsed = coresFull }),
		bound(Mixed, func(_ *Report, s *shares, _ *Machine) { s.storage, s.cpu = s.cpu, s.storage }),
		bound(Unknown, func(r *Report, _ *shares, _ *Machine) { r.Starved = r.Duration() / 2 }),
		bound(Unknown, func(_ *Report, _ *shares, m *Machine) { m.Pressure = false }),
		bound(Unknown, nil),
	}
}

func TestRemedies(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	all := situations()
	if len(all) != len(remedies) {
		t.Fatalf("%d situations for %d remedies", len(all), len(remedies))
	}
	_, rest, _ := strings.Cut(string(page), "## The remedies")
	for i, set := range all {
		r := &Report{Scope: Process, GPUIDs: []string{"gpu0"}, Speedup: 2.5, Disks: []DiskUse{{Name: "sda", ReadBytes: 500 << 20, ReadOperations: 500}}}
		r.Kind, r.End.Mono = Epoch, 10*time.Second
		s, m := shares{}, Machine{Pressure: true}
		set(r, &s, &m)
		x := r.situation(s, m)
		if x.advice() != &remedies[i] {
			t.Errorf("situation %d: %s, want %s", i, x.advice().Name, remedies[i].Name)
		}
		said := r.remedy(s, m)
		if !strings.HasSuffix(said, ".") || strings.Contains(said, "%!") {
			t.Errorf("%q", said)
		}
		t.Logf("%s: %s", remedies[i].Name, said)
		var found bool
		if _, rest, found = strings.Cut(rest, "\n| "+remedies[i].Name+" |"); !found {
			t.Errorf("docs/verdicts.md lacks the line %d, %q, or has it elsewhere", i, remedies[i].Name)
		}
	}
	for _, number := range []string{
		fmt.Sprintf("queue is deep from %.1f", deepQueue), fmt.Sprintf("near its ceiling from %.2f", nearCeiling),
		fmt.Sprintf("far from it up to %.2f", farCeiling), fmt.Sprintf("from %.2f of all cores' time", coresFull),
		fmt.Sprintf("from %.2f of the file", warmLoad), fmt.Sprintf("found none for %.2f of the window", Thresholds.Stall),
	} {
		if !strings.Contains(string(page), number) {
			t.Errorf("docs/verdicts.md lacks %q", number)
		}
	}
}

// Of the disks that a window read from, the one is named that others read from, and how many did.
func TestStaggerNamesTheSharedDisk(t *testing.T) {
	for want, others := range map[string][]int{
		"another window reads from sdb at": {0, 1}, "2 other windows read from sdb at": {1, 2}, "another window reads from sda at": {1, 0},
	} {
		r := &Report{From: []string{"sda", "sdb"}, others: others, Others: others[0] + others[1], Verdict: StorageBound}
		if said := r.remedy(shares{storage: 1}, Machine{}); !strings.Contains(said, want) {
			t.Errorf("%v: %s, want %q", others, said, want)
		}
	}
}

// A disk that does in a window what it never did before has not shown that it can do no more.
func TestPace(t *testing.T) {
	r := &Report{}
	r.End.Mono = 10 * time.Second
	d := &DiskUse{Name: "sda", ReadBytes: 1000 << 20, ReadCeiling: 100 << 20}
	if near, far := r.pace(d); near || far {
		t.Error("near", near, "far", far, "by the window alone")
	}
	r.Ceilings = []sample.Ceiling{{Disk: "sdb", Read: 1 << 40}, {Disk: "sda", Read: 101 << 20}}
	if near, far := r.pace(d); !near || far {
		t.Error("near", near, "far", far, "at its ceiling")
	}
	d.ReadCeiling = 300 << 20
	if near, far := r.pace(d); !near || !far {
		t.Error("near", near, "far", far, "with a peak within the window")
	}
}
