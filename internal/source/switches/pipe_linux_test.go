package switches

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// pipeProgram has a process that waits for a pipe for 100 ms, several times, until another one writes. Processes of the
// shell have no threads of a runtime, which would wake up next to them.
func pipeProgram(facts) {
	must(exec.Command("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.1; echo a; done | "+
		"while read x; do echo $x; done | cat >/dev/null").Run())
}

const rounds = 6

// TestPipe: a plain user sees what a thread waits for, and which thread ends that. On a machine with other work a
// reader may get its CPU late, next to another thread. One good measurement of several is enough here, because
// TestGuessOfPipe tests the rule.
func TestPipe(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	const tries = 5
	for try := 1; ; try++ {
		problems := pipeProblems(t)
		switch {
		case len(problems) == 0:
			return
		case try == tries:
			t.Fatalf("in each of %d measurements; in the last one: %s", tries, strings.Join(problems, "; "))
		}
		t.Logf("measurement %d: %s", try, strings.Join(problems, "; "))
	}
}

// pipeProblems follows pipeProgram and returns what differs from it.
func pipeProblems(t *testing.T) (problems []string) {
	t.Helper()
	problem := func(format string, of ...any) { problems = append(problems, fmt.Sprintf(format, of...)) }
	s := opened(t)
	f, events, lost := trace(t, s, "pipe", nil)
	check(t, events)
	if lost != 0 {
		problem("got %d lost records, want none", lost)
	}
	readers := map[int]bool{}
	wakers := map[int][]int{} // by reader
	outs := map[int]sample.ThreadEvent{}
	for _, e := range events {
		out := outs[e.TID]
		switch {
		case e.Kind == sample.ThreadOut:
			outs[e.TID] = e
		case e.Kind == sample.ThreadIn && out.File == sample.Pipe && e.At-out.At > 80*time.Millisecond && e.PID != f["main"]:
			readers[e.TID] = true
			wakers[e.TID] = append(wakers[e.TID], e.Waker)
			if out.State != sample.StateAsleep || out.Syscall != unix.SYS_READ {
				problem("got %+v, want asleep in read of a pipe", out)
			}
		}
	}
	if len(readers) != 2 {
		problem("got %d threads that wait for a pipe, want 2", len(readers))
	}
	most := 0
	for _, by := range wakers { // cat is woken by the shell that reads
		if len(by) < rounds-1 || len(by) > rounds {
			problem("got %d waits, want %d", len(by), rounds)
		}
		n := 0
		for _, tid := range by {
			if readers[tid] {
				n++
			}
		}
		most = max(most, n)
	}
	if most < rounds-2 { // they are guessed
		problem("got one reader as the waker of the other one %d times, want %d; wakers %v", most, rounds, wakers)
	}
	return problems
}
