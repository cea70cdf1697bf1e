//go:build linux

package joblog

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stallspan/stallspan/lab/scenario"
)

// ms is a millisecond in nanoseconds, as logs count.
const ms = 1_000_000

// logOf writes a log and reads it.
func logOf(t *testing.T, texts ...string) *Log {
	t.Helper()
	var folders []string
	for _, text := range texts {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "1.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	l, err := Read(folders...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pipeline is 100 ms of a main thread that waits for a worker: it reads for 30 ms of its 40, and reads again later.
const pipeline = `main window 0 100000000 0:a
main wait 0 40000000 worker0
main busy 40000000 90000000 0
main gpu 40000000 92000000 -
worker0 read 5000000 35000000 1000:5800000
worker0 read 45000000 60000000 1000:0
main other 95000000 100000000 timer
`

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: got %v s, want %v", what, got, want)
	}
}

func TestTruthFollowsAWait(t *testing.T) {
	l := logOf(t, pipeline)
	cost := map[Kind]float64{reading: 1000} // 1 us a byte from memory: 1 ms a read
	p := Truth(l, Drivers(l), true, 0, 100*ms, cost)
	near(t, "busy", p.Busy, 0.050)
	near(t, "storage", p.Storage, 0.0232) // of 30 ms, without what the read costs from memory, and without ready
	near(t, "ready", p.Ready, 0.0058)
	near(t, "other", p.Other, 0.005)
	near(t, "CPU", p.CPU, 0.014) // 11 of the worker, 3 of its own
	near(t, "late", p.Late, 0.002)
}

func TestTruthWithoutStorageIsCPU(t *testing.T) {
	l := logOf(t, pipeline)
	p := Truth(l, Drivers(l), true, 0, 100*ms, nil)
	near(t, "storage", p.Storage, 0)
	near(t, "CPU", p.CPU, 0.043)
	near(t, "late", p.Late, 0.002)
}

// What a fetch costs is the CPU time that it logs, also in a window with a fast server.
func TestTruthOfFetches(t *testing.T) {
	l := logOf(t, "main window 0 100000000 0:a\nmain fetch 20000000 50000000 1000:4000000:6000000\n")
	for _, cost := range []map[Kind]float64{nil, {fetched: 20000}} {
		p := Truth(l, Drivers(l), false, 0, 100*ms, cost)
		near(t, "network", p.Network, 0.020)
		near(t, "other", p.Other, 0.020)
		near(t, "CPU", p.CPU, 0.080)
	}
}

func TestTruthWithoutGPU(t *testing.T) {
	l := logOf(t, "main window 0 100000000 0:a\nmain read 20000000 50000000 0:0\n")
	p := Truth(l, Drivers(l), false, 0, 100*ms, map[Kind]float64{})
	near(t, "storage", p.Storage, 0.030)
	near(t, "CPU", p.CPU, 0.070)
	near(t, "busy and late", p.Busy+p.Late, 0)
}

func TestTruthOfRanks(t *testing.T) {
	l := logOf(t, `rank0 begin 0 0 0
rank0 begin 100000000 0 -
rank0 wait 0 60000000 rank1
rank1 read 10000000 60000000 0:0
rank0 busy 60000000 100000000 0
rank1 busy 60000000 100000000 1
`)
	p := Truth(l, Drivers(l), true, 0, 100*ms, map[Kind]float64{})
	near(t, "busy", p.Busy, 0.080)
	near(t, "storage", p.Storage, 0.100) // of both accelerators
	near(t, "CPU", p.CPU, 0.020)
	near(t, "late", p.Late, 0)
	if len(l.Windows) != 1 || l.Windows[0].End != 0 {
		t.Errorf("got windows %+v, want one that lasts until the program ends", l.Windows)
	}
}

// Two ranks in the same call log that they wait for each other. What the call does itself is CPU or other.
func TestTruthOfThreadsThatWaitForEachOther(t *testing.T) {
	l := logOf(t, `rank0 wait 20000000 50000000 rank1
rank1 read 0 30000000 1000:0
rank1 wait 30000000 50000000 rank0
`)
	p := Truth(l, []string{"rank0"}, false, 0, 100*ms, map[Kind]float64{})
	near(t, "storage", p.Storage, 0.010)
	near(t, "late", p.Late, 0.020)
	near(t, "CPU", p.CPU, 0.070)
	near(t, "other", p.Other, 0)
}

func TestBusyIsTheUnionOfTwoJobs(t *testing.T) {
	l := logOf(t, "main window 0 100000000 0:a\nmain busy 0 30000000 0\n",
		"main read 0 90000000 0:0\nmain busy 20000000 60000000 0\n")
	p := Truth(l, Drivers(l), true, 0, 100*ms, map[Kind]float64{})
	near(t, "busy", p.Busy, 0.060)
	near(t, "storage", p.Storage, 0) // the other job's read
	near(t, "late", p.Late, 0)
}

func TestLateAndReadyAreNoErrors(t *testing.T) {
	d := Divided{Parts: scenario.Parts{Busy: 0.4, Storage: 0.2, CPU: 0.2}, Late: 0.1, Ready: 0.1}
	for _, c := range []struct{ storage, cpu, other, want float64 }{
		{0.3, 0.3, 0, 0}, {0.2, 0.4, 0, 0}, {0.2, 0.3, 0.1, 0}, {0.3, 0.2, 0.1, 0}, {0.25, 0.25, 0.1, 0},
		{0.4, 0.2, 0, 0.1}, {0.1, 0.5, 0, 0.1},
	} {
		_, off := d.Apart(scenario.Parts{Busy: 0.4, Storage: c.storage, CPU: c.cpu, Other: c.other})
		if math.Abs(off-c.want) > 1e-9 {
			t.Errorf("found %+v: got an error of %v, want %v", c, off, c.want)
		}
	}
	d = Divided{Parts: scenario.Parts{Busy: 0.6, CPU: 0.15}, Late: 0.25}
	if got := d.Label(); got != "" {
		t.Errorf("got the label %q, want none: it depends on the late time", got)
	}
}

func TestCostsAreThoseOfTheReruns(t *testing.T) {
	l := logOf(t, `main read 0 50000000 1000:0
main read 100000000 100004000 1000:0
main read 110000000 110002000 1000:0
main write 120000000 120001000 500:0
`)
	got := Costs(l, []Window{{Start: 100 * ms, End: 200 * ms}})
	if got[reading] != 3 || got[writing] != 2 {
		t.Errorf("got %v ns a byte, want 3 to read and 2 to write", got)
	}
}

func TestLabelsAreOfAllFolders(t *testing.T) {
	l := logOf(t, "main label 20 30 {\"kind\":\"epoch\",\"begins\":[7]}\n", "main label 5 9 {\"kind\":\"phase\"}\n")
	want := []Label{
		{Kind: "phase", Start: 5, End: 9},
		{Kind: "epoch", Start: 20, End: 30, Begins: []int64{7}},
	}
	if !reflect.DeepEqual(l.Labels, want) {
		t.Errorf("got %+v, want %+v", l.Labels, want)
	}
}
