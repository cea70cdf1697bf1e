package agent

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
)

// TestWindowOfAKilledProgram: nothing ends the window of a program that is killed. The agent does, at the time at which
// it was killed.
func TestWindowOfAKilledProgram(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	v, _ := startAgent(t, socket)
	defer stop(t, v)

	work := stallspan(t)
	work.Path, work.Args = python(t), []string{"python3", "-c", `
import os, sys, time
sys.path.insert(0, os.path.abspath("../python/src"))
import stallspan
w = stallspan.load("llama-3").begin()
print(w.traceparent, flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    pass
`}
	work.Env = append(work.Env, api.SocketVariable+"="+socket)
	var printed liveOutput
	work.Stdout = &printed
	work.start()
	printed.until(t, 1, "00-")
	client := api.NewClient(socket)
	find := func(what string, in func(api.Listing) []*explain.Report, fits func(*explain.Report) bool) *explain.Report {
		t.Helper()
		for end := time.Now().Add(slowest / 2); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			all, err := client.Windows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range in(all) {
				if r.Model == "llama-3" && fits(r) {
					return r
				}
			}
		}
		t.Fatalf("got no %s in time", what)
		return nil
	}
	find("open load of 1.5 s", func(l api.Listing) []*explain.Report { return l.Running },
		func(r *explain.Report) bool { return r.Duration > 1.5 })
	killed := time.Now()
	if err := work.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = work.Wait() // its error is that it was killed
	gone := time.Now()
	r := find("load that has ended", func(l api.Listing) []*explain.Report { return l.Ended },
		func(*explain.Report) bool { return true })
	if !r.Unfinished || r.Ended != "its process ended" || r.Failed {
		t.Errorf("got unfinished %v, ended %q, failed %v, want the end of its process", r.Unfinished, r.Ended, r.Failed)
	}
	if r.End.Before(killed.Add(-time.Second)) || r.End.After(gone.Add(8*time.Second)) { // it is noticed after 10 s
		t.Errorf("got the end %v, want about that of the process, %v", r.End, killed)
	}
}
