package compare

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// report is the JSON of a window.
func report(t testing.TB, r *window.Report) *explain.Report {
	t.Helper()
	text, err := json.Marshal(explain.NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("got the error %v, want none: %s", err, text)
	}
	return d.Windows[0]
}

// spent makes a window with these parts. With gpus 0 it has the program's own time, without busy.
func spent(gpus int, busy, storage, cpu, other time.Duration) *window.Report {
	n := max(1, gpus)
	r := &window.Report{Window: window.Window{Kind: window.Epoch, Epoch: 1, HasEpoch: true}, Ledger: window.Ledger{Split: true, Busy: busy, Storage: storage, CPU: cpu}}
	r.End = sample.Stamp{Mono: (busy + storage + cpu + other) / time.Duration(n)}
	r.Other = r.GPUTime()
	for range gpus {
		r.GPUIDs = append(r.GPUIDs, "GPU")
	}
	r.Other = r.GPUTime() - busy - storage - cpu
	return r
}

func random(t testing.TB, rng *rand.Rand, gpus int) *explain.Report {
	part := func() time.Duration {
		if rng.IntN(4) == 0 {
			return 0
		}
		return time.Duration(math.Exp(rng.Float64()*25)) * time.Duration(max(1, gpus)) // 1 ns to a minute
	}
	busy := part()
	if gpus == 0 {
		busy = 0
	}
	w := report(t, spent(gpus, busy, part(), part(), part()))
	w.Unfinished = rng.IntN(10) == 0
	return w
}

func near(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-8*(1+scale) }

// adds checks that a pair's parts add up to its durations, and their differences to that of the durations.
func adds(t *testing.T, p *Pair) {
	t.Helper()
	if p.Parts == nil {
		return
	}
	var a, b, difference float64
	for _, part := range p.Parts {
		a, b, difference = a+part.A, b+part.B, difference+part.Difference
	}
	scale := p.A.Duration + p.B.Duration
	if !near(a, p.A.Duration, scale) || !near(b, p.B.Duration, scale) || !near(difference, p.Difference, scale) {
		t.Errorf("the parts add up to %g s, %g s and %g s: %+v", a, b, difference, p)
	}
	if n := float64(p.A.GPUs); p.Ledger == GPULedger && p.A.GPUs == p.B.GPUs &&
		!near(difference*n, p.Difference*n, n*scale) {
		t.Errorf("not the difference of the GPUs' time: %+v", p)
	}
}

func TestPartsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	explained := 0
	for range 1000 {
		gpus := rng.IntN(5)
		other := gpus
		if rng.IntN(5) == 0 {
			other = rng.IntN(5)
		}
		var a, b explain.Document
		for range 1 + rng.IntN(4) {
			a.Windows = append(a.Windows, random(t, rng, gpus))
			b.Windows = append(b.Windows, random(t, rng, other))
		}
		c := Compare(&a, &b)
		for _, p := range c.Windows {
			adds(t, p)
			if (p.Parts != nil) != ((gpus > 0) == (other > 0)) {
				t.Errorf("ledgers of %d and %d GPUs: %+v", gpus, other, p)
			}
			if p.ExplainedBy != "" {
				explained++
			} else if p.Parts != nil && p.Change != Same && p.Change != Unknown && math.Abs(p.Difference) > 4*Grain {
				t.Errorf("nothing explains %+v", p)
			}
		}
		if c.Whole != nil {
			adds(t, c.Whole)
		}
	}
	if explained < 300 {
		t.Errorf("only %d windows were explained", explained)
	}
}

// Swapping the reports gives the opposite result.
func TestTurnedRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	opposite := map[Change]Change{Same: Same, Unknown: Unknown, Faster: Slower, Slower: Faster}
	for range 700 {
		a := &explain.Document{Windows: []*explain.Report{random(t, rng, 1)}}
		b := &explain.Document{Windows: []*explain.Report{random(t, rng, 1)}}
		p, q := Compare(a, b).Windows[0], Compare(b, a).Windows[0]
		if q.Change != opposite[p.Change] || q.Difference != -p.Difference || q.ExplainedBy != p.ExplainedBy {
			t.Fatalf("%+v\nturned round: %+v", p, q)
		}
		if same := Compare(a, a); same.Windows[0].Change != Same && !a.Windows[0].Unfinished {
			t.Fatalf("got %+v for a report compared with itself, want no change", same.Windows[0])
		}
	}
}

const s = time.Second

func TestFindings(t *testing.T) {
	copied := func(w *explain.Report) *explain.Report { c := *w; return &c }
	disk := func(w *explain.Report, name string, bytes uint64, await float64) *explain.Report {
		d := explain.Disk{Name: name, ReadBytes: bytes, ReadAwait: &await}
		if bytes == 0 {
			d.ReadAwait = nil
		}
		w = copied(w)
		w.Disks = append(w.Disks, d)
		return w
	}
	bound := func(w *explain.Report, b float64) *explain.Report {
		w = copied(w)
		w.SpeedupBound = &b
		return w
	}
	within := func(w *explain.Report, low, high float64) *explain.Report {
		w = copied(w)
		w.SpeedupLow, w.SpeedupHigh = low, high
		return w
	}
	cut := func(w *explain.Report) *explain.Report {
		w = copied(w)
		w.Unfinished = true
		return w
	}
	base := report(t, spent(1, 4*s, 4*s, 0, 0))
	for name, test := range map[string]struct {
		a, b    *explain.Report
		finding string
		notes   string
	}{
		"a faster disk": {
			bound(disk(base, "sda", 350<<20, 0.0124), 2), disk(report(t, spent(1, 4*s, s/10, 0, 0)), "sda", 0, 0),
			"epoch 1: 8.0 s -> 4.1 s, 1.95x faster: storage stall 3.9 s less.",
			"sda read 350 MiB (a read took 12.4 ms) in A and nothing in B. A predicted about 2.0x faster without waiting for " +
				"storage; B is 1.95x faster, as predicted.",
		},
		"half of what was possible": {
			bound(base, 2), report(t, spent(1, 4*s, 2*s, 0, 0)),
			"epoch 1: 8.0 s -> 6.0 s, 1.33x faster: storage stall 2.0 s less.",
			"A predicted about 2.0x faster without waiting for storage; B is 1.33x faster, and still waited for storage " +
				"33 % of its time.",
		},
		"in the range, but not without waiting": {
			within(bound(report(t, spent(1, 0, 7*s, s, 0)), 4), 1.8, 9), report(t, spent(1, 0, 2*s, s, 0)),
			"epoch 1: 8.0 s -> 3.0 s, 2.67x faster: storage stall 5.0 s less.",
			"A predicted at least 1.8x faster without waiting for storage; B is 2.67x faster, and still waited for " +
				"storage 67 % of its time.",
		},
		"more than the disk": {
			within(bound(base, 2), 1.8, 2.4), report(t, spent(1, s, 0, 0, 0)),
			"epoch 1: 8.0 s -> 1.0 s, 8.00x faster: storage stall 4.0 s less, GPU work 3.0 s less.",
			"A predicted about 2.0x faster (1.8 to 2.4) without waiting for storage; B is 8.00x faster: more than storage differs.",
		},
		"more, without a range": {
			bound(base, 2), report(t, spent(1, s, 0, 0, 0)),
			"epoch 1: 8.0 s -> 1.0 s, 8.00x faster: storage stall 4.0 s less, GPU work 3.0 s less.",
			"A predicted about 2.0x faster without waiting for storage; B is 8.00x faster.",
		},
		"within the range": {
			within(bound(base, 4), 1.8, 9), report(t, spent(1, 4*s, s/10, 0, 0)),
			"epoch 1: 8.0 s -> 4.1 s, 1.95x faster: storage stall 3.9 s less.",
			"A predicted at least 1.8x faster without waiting for storage; B is 1.95x faster, as predicted.",
		},
		"a slower disk": {
			report(t, spent(1, 4*s, 0, 0, 0)), bound(base, 2),
			"epoch 1: 4.0 s -> 8.0 s, 2.00x slower: storage stall 4.0 s more.",
			"B predicted about 2.0x faster without waiting for storage; A is 2.00x faster, as predicted.",
		},
		"one eats the other": {
			base, report(t, spent(1, 4*s, s, 3*s, 0)),
			"epoch 1: 8.0 s -> 8.0 s, about the same, but spent differently: storage stall 3.0 s less, CPU stall 3.0 s more.", "",
		},
		"noise": {base, report(t, spent(1, 4*s, 4*s+s/10, 0, 0)), "epoch 1: 8.0 s -> 8.1 s, about the same.", ""},
		"not known": {
			base, report(t, spent(1, 0, 0, 0, s)),
			"epoch 1: 8.0 s -> 1.0 s, 8.00x faster: GPU work 4.0 s less, storage stall 4.0 s less.", "",
		},
		"idle": {
			base, report(t, spent(1, 4*s, 4*s, 0, 8*s)),
			"epoch 1: 8.0 s -> 16.0 s, 2.00x slower: unexplained GPU idle time 8.0 s more.", "",
		},
		"more GPUs": {
			base, report(t, spent(4, 4*s, 4*s, 0, 0)),
			"epoch 1: 8.0 s -> 2.0 s, 4.00x faster: GPU work 3.0 s less, storage stall 3.0 s less.",
			"A ran on 1 GPU, B on 4 GPUs: the parts are the mean of one.",
		},
		"no GPU in B": {
			base, report(t, spent(0, 0, 4*s, s, 0)), "epoch 1: 8.0 s -> 5.0 s, 1.60x faster.",
			"A has the ledger of a GPU, and B, without a GPU, that of the program: their parts cannot be compared.",
		},
		"cut short": {base, cut(base), "epoch 1: 8.0 s -> 8.0 s, cut short.",
			"It was cut short in B, so its duration cannot be compared."},
		"an instant": {base, report(t, spent(1, 0, 0, 0, 0)),
			"epoch 1: 8.0 s -> none, 1000x+ faster: GPU work 4.0 s less, storage stall 4.0 s less.", ""},
		"no ledger": {
			base, report(t, &window.Report{Window: window.Window{Kind: window.Epoch, Epoch: 2, HasEpoch: true,
				End: sample.Stamp{Mono: s}}}),
			"epoch 1 in A, epoch 2 in B: 8.0 s -> 1.0 s, 8.00x faster.", "In B its name is epoch 2. There is no ledger in B.",
		},
	} {
		p := Compare(&explain.Document{Windows: []*explain.Report{test.a}},
			&explain.Document{Windows: []*explain.Report{test.b}}).Windows[0]
		notes := strings.Join(p.Notes, " ")
		if strings.HasPrefix(name, "one eats") {
			notes = "" // of disks, which it has none of
		}
		if p.Finding != test.finding || notes != test.notes {
			t.Errorf("%s: got\n%s\n%s\nwant\n%s\n%s", name, p.Finding, notes, test.finding, test.notes)
		}
	}
}

func named(kind window.Kind, name string, epoch int) *explain.Report {
	w := &explain.Report{Kind: kind, Name: name, Duration: 1}
	if kind == window.Epoch {
		w.Epoch = &epoch
	}
	return w
}

func TestMatching(t *testing.T) {
	a := &explain.Document{Windows: []*explain.Report{named(window.Epoch, "", 1), named(window.Epoch, "", 1),
		named(window.Epoch, "", 2),
		named(window.Custom, "epoch 2", 0), named(window.Epoch, "val", 2)}}
	b := &explain.Document{Windows: []*explain.Report{named(window.Epoch, "", 2), named(window.Epoch, "", 1),
		named(window.Epoch, "", 1),
		named(window.Epoch, "", 1), named(window.Epoch, "", 2)}}
	for i := range a.Windows {
		a.Windows[i].ID = string(rune('a' + i))
	}
	for i := range b.Windows {
		b.Windows[i].ID = string(rune('0' + i))
	}
	c := Compare(a, b)
	var got []string
	for _, p := range c.Windows {
		got = append(got, p.A.ID+p.B.ID)
	}
	if strings.Join(got, " ") != "a1 b2 c0" {
		t.Errorf("matched %v", got)
	}
	if len(c.OnlyA) != 2 || len(c.OnlyB) != 2 || c.OnlyA[0].Label != "epoch 2" || c.OnlyB[0].Label != "epoch 1" {
		t.Errorf("only in A %v, only in B %v", c.OnlyA, c.OnlyB)
	}
	if c := Compare(a, &explain.Document{Windows: []*explain.Report{named(window.Checkpoint, "", 0)}}); c.Judged() ||
		len(c.Windows) != 0 ||
		!strings.HasPrefix(c.Finding, "No window of A is also in B") {
		t.Errorf("got %+v, want nothing to compare", c)
	}
}

func TestSlowerBy(t *testing.T) {
	for _, test := range []struct {
		a, b, share float64
		slower      bool
	}{
		{1, 1.09, 0.1, false}, {1, 1.11, 0.1, true}, {1, 1.11, 0.2, false}, {1, 1.03, 0.02, true},
		{0.001, 0.009, 0.1, false}, {0, 1, 0.1, true}, {2, 1, 0, false},
	} {
		a, b := named(window.Epoch, "", 1), named(window.Epoch, "", 1)
		a.Duration, b.Duration = test.a, test.b
		c := Compare(&explain.Document{Windows: []*explain.Report{a}}, &explain.Document{Windows: []*explain.Report{b}})
		if got := len(c.SlowerBy(test.share)) > 0; got != test.slower {
			t.Errorf("%+v: got %v, want %v", test, got, test.slower)
		}
		b.Unfinished = true
		if c := Compare(&explain.Document{Windows: []*explain.Report{a}},
			&explain.Document{Windows: []*explain.Report{b}}); len(c.SlowerBy(0)) > 0 ||
			c.Judged() {
			t.Errorf("%+v, cut short, is judged", test)
		}
	}
}
