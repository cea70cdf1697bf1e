//go:build linux && (amd64 || arm64)

package bpf

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A process that computes is reported again and again, and one that sleeps is not.
func TestEachRan(t *testing.T) {
	s := opened(t, defaults)
	pid := func(name string, arguments ...string) int {
		program := exec.Command(name, arguments...)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = program.Process.Kill()
			_ = program.Wait()
		})
		return program.Process.Pid
	}
	works, sleeps := pid("sh", "-c", "while :; do :; done"), pid("sleep", "1000")
	time.Sleep(200 * time.Millisecond) // sleep has called nanosleep
	if err := s.Follow("job", []int{works, sleeps}); err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	all := s.EachRan(func(pid int, _ bool) { seen[pid]++ })
	if !all || seen[works] == 0 || seen[sleeps] == 0 {
		t.Errorf("at first: got %v, complete: %v; want both processes", seen, all)
	}
	clear(seen)
	for end := time.Now().Add(10 * time.Second); seen[works] < 5 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		if err := s.Read(&sample.Sample{}); err != nil { // takes events, too
			t.Fatal(err)
		}
		s.EachRan(func(pid int, _ bool) { seen[pid]++ })
	}
	if seen[works] < 5 || seen[sleeps] > 0 {
		t.Errorf("later: got %v, want process %d again and again, and %d never", seen, works, sleeps)
	}
	s.Unfollow("job")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		clear(seen)
		s.EachRan(func(pid int, _ bool) { seen[pid]++ })
		if len(seen) == 0 && len(s.active.threads) <= 1 {
			break // what was on its way has come
		}
		if time.Now().After(end) {
			t.Fatalf("after Unfollow: got %v, %d threads; want none for ever", seen, len(s.active.threads))
		}
	}
}

// The end of one job does not end the events of a process that another job has, too.
func TestUnfollowLeavesProcessesOfOtherJobs(t *testing.T) {
	s := opened(t, defaults)
	program := exec.Command("sh", "-c", "while :; do sleep 0.01; done")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	pid := program.Process.Pid
	for _, job := range []string{"outer", "inner"} {
		if err := s.Follow(job, []int{pid}); err != nil {
			t.Fatal(err)
		}
	}
	s.Unfollow("outer")
	var began []string
	switches := 0
	for end := time.Now().Add(10 * time.Second); switches < 5 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		var got sample.Sample
		if err := s.Read(&got); err != nil {
			t.Fatal(err)
		}
		for _, e := range got.Schedule.Events {
			switch {
			case e.TID != pid:
			case e.Kind == sample.ThreadBegan:
				began, switches = append(began, e.Job), 0
			default:
				switches++
			}
		}
	}
	if len(began) == 0 || began[len(began)-1] != "inner" || switches < 5 {
		t.Errorf("got the jobs %q and then %d events of the process, want inner as the last and 5", began, switches)
	}
}

// What the threads of a job read is counted for it, as soon as they leave their CPUs.
func TestEachMoved(t *testing.T) {
	s := opened(t, defaults)
	reads := exec.Command("sh", "-c", "sleep 0.3; head -c 8388608 /dev/zero >/dev/null; exec sleep 1000")
	if err := reads.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reads.Process.Kill()
		_ = reads.Wait()
	})
	if err := s.Follow("job", []int{reads.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	count := func(least uint64) (n int) {
		s.EachMoved(least, func(job string) {
			if job != "job" {
				t.Errorf("got job %q", job)
			}
			n++
		})
		return n
	}
	if n := count(4 << 20); n != 0 {
		t.Fatal("before it reads: got a report, want none")
	}
	for end := time.Now().Add(20 * time.Second); count(4<<20) == 0; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("got no report of a job that read 8 MiB")
		}
	}
	time.Sleep(500 * time.Millisecond)
	count(1) // the rest
	if n := count(1); n != 0 {
		t.Error("a second time: got a report of bytes that were reported")
	}
}
