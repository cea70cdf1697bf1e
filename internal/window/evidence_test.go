package window

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestVerdictByEvidence: what an estimate may miss does not keep the scheduler's evidence from a verdict.
func TestVerdictByEvidence(t *testing.T) {
	for _, test := range []struct {
		lacks    string
		machine  Machine
		mounts   []sample.Mount
		estimate Reason
	}{
		{"a kernel with PSI", Machine{}, nil, NoIOPressure},
		{"readable I/O of the job", Machine{Pressure: true, HiddenReads: true}, nil, HiddenReads},
		{"a disk under the files", Machine{Pressure: true}, []sample.Mount{{Point: "/data", Type: "nfs4"}}, HiddenRemoteIO},
	} {
		for _, evidence := range []Evidence{FromSchedule, FromMoments, FromPressure} {
			h, err := history.New(history.Config{})
			if err != nil {
				t.Fatal(err)
			}
			r := &Report{Ledger: Ledger{Evidence: evidence, Split: true, Busy: 30 * time.Second, CPU: 40 * time.Second, Other: 30 * time.Second}, Facts: Facts{Scope: Process, GPUIDs: []string{"gpu0"}, Mounts: test.mounts}}
			r.End.Mono = 100 * time.Second
			r.Judgement = judge(&view{&r.Window, h, &test.machine}, r)
			switch scheduled := evidence.Followed(); {
			case scheduled && (r.Verdict != CPUBound || len(r.Missing) > 0):
				t.Errorf("%s without %s: got %s, missing %v, want cpu_bound and nothing missing", evidence, test.lacks, r.Verdict,
					r.Missing)
			case !scheduled && (r.Verdict != Unknown || !r.Lacks(test.estimate)):
				t.Errorf("%s without %s: got %s, missing %v, want unknown for %s", evidence, test.lacks, r.Verdict, r.Missing,
					test.estimate)
			}
		}
	}
}

// TestWithin: the reasons of other are never more than other.
func TestWithin(t *testing.T) {
	got := within([]OtherReason{{Kind: OtherTimer, Time: 6 * time.Second}, {Kind: OtherPipe, Time: 2 * time.Second}},
		4*time.Second)
	if got[0].Time != 3*time.Second || got[1].Time != time.Second {
		t.Errorf("got %v, want 3 s and 1 s", got)
	}
	got = within([]OtherReason{{Kind: OtherTimer, Time: time.Second}}, 4*time.Second)
	if got[0].Time != time.Second {
		t.Errorf("got %v, want 1 s: a part has no reason", got)
	}
}

// TestPartlyFollowed: what the evidence of threads leaves out is uncertain. A ledger is not made from evidence that
// covers too little of a window.
func TestPartlyFollowed(t *testing.T) {
	for _, test := range []struct {
		followed, sampled time.Duration // of 10 s
		want              Evidence
		uncertainty       float64
	}{
		{10 * time.Second, 0, FromSchedule, 0},
		{9 * time.Second, 0, FromSchedule, 0.1},
		{9 * time.Second, 400 * time.Millisecond, FromSchedule, 0.1},
		{10 * time.Second, 600 * time.Millisecond, FromMoments, 0.0408},
		{8100 * time.Millisecond, 0, FromSchedule, 0.19},
		{7900 * time.Millisecond, 0, FromPressure, 0},
	} {
		h := newHistory(t)
		for at := time.Duration(0); at <= 10*time.Second; at += 100 * time.Millisecond {
			missing := 10*time.Second - test.followed // it begins late
			scheduled := &history.Scheduled{Time: max(0, at-missing), Sampled: min(max(0, at-missing), test.sampled)}
			scheduled.Moments = 100 * int(scheduled.Sampled/(100*time.Millisecond))
			of := history.LedgerTotals{ID: ledger.ID("job", ""), Storage: at / 2, CPU: at / 2, HasGain: true}
			of.Scheduled = scheduled
			if err := h.AppendLedgers(at, []history.LedgerTotals{of}); err != nil {
				t.Fatal(err)
			}
		}
		w := Window{Kind: Epoch, End: sample.Stamp{Mono: 10 * time.Second}}
		v := &view{&w, h, &Machine{Target: ledger.Target{Job: "job", Own: true}}}
		l := addLedgers(v, &Report{Window: w})
		if l.Evidence != test.want || math.Abs(l.width-test.uncertainty) > 0.002 {
			t.Errorf("followed for %v, by moments for %v: got %s, uncertainty %.3f, want %s, %.3f",
				test.followed, test.sampled, l.Evidence, l.width, test.want, test.uncertainty)
		}
	}
}
