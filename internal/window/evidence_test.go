package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
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
			r := &Report{Evidence: evidence, Scope: Process, GPUIDs: []string{"gpu0"}, Split: true, Mounts: test.mounts,
				Busy: 30 * time.Second, CPU: 40 * time.Second, Other: 30 * time.Second}
			r.End.Mono = 100 * time.Second
			(&builder{r, h, &test.machine}).judge()
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

// TestEnough: a short window may lack what its program did before it was followed.
func TestEnough(t *testing.T) {
	for _, test := range []struct {
		has, total float64
		gpus       int
		want       bool
	}{
		{95, 100, 1, true}, {94, 100, 1, false}, {0.66, 0.75, 0, true}, {0.6, 0.75, 0, false}, {0.3, 0.39, 0, false},
		{1.32, 1.5, 2, true}, {1.28, 1.5, 2, false}, {0, 0, 0, false},
	} {
		if got := enough(test.has, test.total, test.gpus); got != test.want {
			t.Errorf("%v of %v s with %d GPUs: got %v, want %v", test.has, test.total, test.gpus, got, test.want)
		}
	}
}
