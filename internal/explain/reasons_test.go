package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// idleFor is a report of ten seconds with reasons of other, in shares of the window.
func idleFor(gpus int, v window.Verdict, s window.Shares, reasons ...window.OtherReason) *window.Report {
	r := &window.Report{Facts: window.Facts{Scope: window.Process}, Judgement: window.Judgement{Verdict: v},
		Ledger: window.Ledger{Evidence: window.FromSchedule, OtherReasons: reasons}}
	r.GPUIDs = []string{"gpu0", "gpu1"}[:gpus]
	divide(r, s)
	return r
}

func because(kind window.OtherKind, name string, time time.Duration) window.OtherReason {
	return window.OtherReason{Kind: kind, Name: name, Time: time}
}

// TestReasonsInFinding: the finding names what other was, first of all where other is the verdict's reason.
func TestReasonsInFinding(t *testing.T) {
	const peer = "receiving from 10.0.0.7:443 over TCP"
	network := because(window.OtherNetwork, peer, 6200*time.Millisecond)
	timer := because(window.OtherTimer, "timer", 400*time.Millisecond)
	lock := because(window.OtherLock, "futex held by thread feeder", 300*time.Millisecond)
	brief := because(window.OtherTimer, "timer", 40*time.Millisecond)
	idle := window.Shares{Busy: 0.3, Other: 0.7}
	for _, test := range []struct {
		report *window.Report
		want   string
	}{
		{idleFor(1, window.Unknown, idle, network, timer, lock),
			"The GPU waited for the network 62 % of the time: " + peer +
				" (62 %), timer (4 %), futex held by thread feeder (3 %); it was busy 30 %."},
		{idleFor(0, window.Unknown, window.Shares{CPU: 0.3, Other: 0.7}, network),
			"The program waited for the network 62 % of the time: " + peer + " (62 %); it was on the CPU 30 %."},
		{idleFor(1, window.Unknown, idle, because(window.OtherTimer, "timer", 7*time.Second)),
			"The GPU waited for a timer 70 % of the time; it was busy 30 %."},
		{idleFor(1, window.Unknown, window.Shares{Busy: 0.2, Storage: 0.09, CPU: 0.06, Other: 0.65},
			because(window.OtherTimer, "timer", 6*time.Second)),
			"The GPU waited for a timer 60 % of the time; it was busy 20 % and waited for storage 9 % " +
				"and for CPU work 6 %."},
		{idleFor(1, window.Unknown, window.Shares{Busy: 0.2, CPU: 0.08, Ready: 0.12, Other: 0.6},
			because(window.OtherTimer, "timer", 6*time.Second)),
			"The GPU waited for a timer 60 % of the time; it was busy 20 % and waited for CPU work 8 % " +
				"and for a core for this work 12 %."},
		{idleFor(0, window.WaitBound, window.Shares{CPU: 0.07, Ready: 0.18, Other: 0.75},
			because(window.OtherTimer, "timer", 7500*time.Millisecond)),
			"The program waited for a timer 75 % of the time; it was on the CPU 7 % and waited for a core 18 %."},
		{idleFor(1, window.Unknown, idle, because(window.OtherTimer, "timer", 3*time.Second),
			because(window.OtherLock, "futex", 2*time.Second)),
			"The GPU waited for neither storage nor CPU work 70 % of the " +
				"time: timer (30 %), futex (20 %); it was busy 30 %."},
		{idleFor(1, window.Unknown, idle, because(window.OtherNetwork, "receiving from a", 2*time.Second),
			because(window.OtherTimer, "timer", 2*time.Second), because(window.OtherNetwork, "receiving from b",
				2*time.Second)),
			"The GPU waited for the network 40 % of the time: receiving from a (20 %), timer (20 %), receiving from b (20 %); " +
				"it was busy 30 %."},
		{idleFor(0, window.Unknown, window.Shares{CPU: 0.02, Other: 0.98},
			because(window.OtherNetwork, "receiving from a unix socket of PID 7 postgres", 9800*time.Millisecond)),
			"The program waited for another program 98 % of the time: receiving from a unix socket of PID 7 postgres (98 %); " +
				"it was on the CPU 2 %."},
		{idleFor(1, window.StorageBound, window.Shares{Busy: 0.33, Storage: 0.6, Other: 0.07}, timer, lock),
			"The GPU was busy 33 % and waited for storage 60 % of the time; 7 % was other waiting: timer (4 %), " +
				"futex held by thread feeder (3 %)."},
		{idleFor(1, window.StorageBound, window.Shares{Busy: 0.36, Storage: 0.6, Other: 0.04}, timer),
			"The GPU was busy 36 % and waited for storage 60 % of the time."},
		{idleFor(1, window.GPUBound, window.Shares{Busy: 0.93, Other: 0.07}, brief),
			"The GPU was busy 93 % of the time."},
	} {
		if got := Finding(test.report); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	two := idleFor(2, window.Unknown, window.Shares{Other: 0.5}, network)
	two.Busy, two.Other = two.GPUTime()*3/10, two.GPUTime()*7/10
	if got, want := Finding(two), "The GPUs waited for neither storage nor CPU work 70 % of the time: "+peer+
		" (31 %); they were busy 30 %."; got != want {
		t.Errorf("two GPUs: got %q, want %q", got, want)
	}
	estimated := idleFor(1, window.Unknown, idle, network)
	estimated.Evidence = window.FromPressure
	if got := Finding(estimated); strings.Contains(got, peer) || len(Reasons(estimated)) > 0 {
		t.Errorf("without the scheduler's evidence: got %q, want no reason", got)
	}
}

// TestEveryReasonHasWords: no kind of reason is without a phrase and a remedy.
func TestEveryReasonHasWords(t *testing.T) {
	for _, kind := range []window.OtherKind{window.OtherGPU, window.OtherNetwork, window.OtherPipe, window.OtherLock,
		window.OtherTimer, window.OtherChild, window.OtherSteal, window.OtherStop, window.OtherEvent} {
		r := idleFor(1, window.Unknown, window.Shares{Busy: 0.2, Other: 0.8}, because(kind, "x", 8*time.Second))
		finding, remedy := Finding(r), Remedy(r)
		if waitedFor[kind] == "" || !strings.HasPrefix(finding,
			"The GPU waited "+waitedFor[kind]+" 80 % of the time: x") {
			t.Errorf("%s: got the finding %q, want it to begin with the reason", kind, finding)
		}
		stack := strings.HasSuffix(remedy, " shows the line of a Python program.")
		outside := []window.OtherKind{window.OtherSteal, window.OtherStop}
		if !strings.HasPrefix(remedy, whereToLook[kind]) || stack == slices.Contains(outside, kind) {
			t.Errorf("%s: got the remedy %q, want %q", kind, remedy, whereToLook[kind])
		}
	}
}

// TestEvidenceOf: the table says what its ledgers were made from, and why not from the scheduler.
func TestEvidenceOf(t *testing.T) {
	of := func(e window.Evidence, why string) *window.Report {
		return &window.Report{Ledger: window.Ledger{Evidence: e, NoSchedule: why}}
	}
	const rights = "following the scheduler needs root, or CAP_BPF and CAP_PERFMON"
	for want, reports := range map[string][]*window.Report{
		"": {of("", "")},
		"Evidence: every change of state of the program's threads.":       {of(window.FromSchedule, ""), of("", "")},
		"Evidence: what the program's threads were in at random moments.": {of(window.FromMoments, rights)},
		"Evidence: pressure (PSI), disk queues and CPU times; " + rights + ".": {of(window.FromPressure, rights),
			of(window.FromPressure, rights)},
		"Evidence: of 2 windows every change of state of the program's threads; of 1 window pressure (PSI), disk queues " +
			"and CPU times.": {of(window.FromSchedule, ""), of(window.FromPressure, ""), of(window.FromSchedule, "")},
	} {
		if got := EvidenceOf(reports); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
