//go:build amd64 || arm64

package helper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// BenchmarkTick reads 300 processes of another user, by this process as root and by a helper. All is a reading of all
// bytes, as for the edge of a window. Quiet is a usual one, of processes that sleep. The metrics are the CPU time of
// this process and of the helper.
func BenchmarkTick(b *testing.B) {
	const count = 300
	if os.Geteuid() != 0 {
		b.Skip("needs root for a second user")
	}
	pid := crowd(b, count)
	for _, edge := range []bool{true, false} {
		for _, asks := range []bool{false, true} {
			b.Run(fmt.Sprintf("all=%v/helper=%v", edge, asks), func(b *testing.B) {
				source := process.New("/")
				defer source.Close()
				helper := 0
				if asks {
					var client *Client
					client, helper = startReader(b)
					defer client.close()
					source.WithReader(client)
				}
				if err := source.Add("crowd", pid, process.Options{}); err != nil {
					b.Fatal(err)
				}
				var s sample.Sample
				for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					s.Reset()
					_ = source.Read(&s)
				}
				if got := s.Jobs[0]; got.Processes != count+1 || !got.HasIO {
					b.Fatalf("got %d processes, bytes %v", got.Processes, got.HasIO)
				}
				own, theirs := cpuTime(b, os.Getpid()), cpuTime(b, helper)
				for b.Loop() {
					s.Reset()
					s.Edge = edge
					if err := source.Read(&s); err != nil {
						b.Fatal(err)
					}
				}
				n := float64(b.N)
				b.ReportMetric(float64(cpuTime(b, os.Getpid())-own)/n, "own-ns/op")
				b.ReportMetric(float64(cpuTime(b, helper)-theirs)/n, "helper-ns/op")
			})
		}
	}
}

// crowd starts a shell of another user with children that sleep.
func crowd(b *testing.B, count int) (pid int) {
	b.Helper()
	pid = victim(b, "sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 900 & i=$((i+1)); done; wait", count))
	b.Cleanup(func() {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for child := range bytes.FieldsSeq(children) {
			var id int
			if _, err := fmt.Sscan(string(child), &id); err == nil {
				_ = unix.Kill(id, unix.SIGKILL)
			}
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil || time.Now().After(end) {
			b.Fatalf("got %d children, %v", len(bytes.Fields(children)), err)
		}
		if len(bytes.Fields(children)) == count {
			return pid
		}
	}
}

// startReader starts a helper that reads.
func startReader(b *testing.B) (c *Client, pid int) {
	b.Helper()
	s := started{Root: "/", Sockets: map[string]int{}}
	if err := s.start([]string{"read"}, trust.Processes); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(reap(s.Keeper))
	con, err := s.inherit(roles[0], s.Sockets["read"])
	if err != nil {
		b.Fatal(err)
	}
	<-con.greeted
	if pid, err = childOf(s.Keeper, "read"); err != nil {
		b.Fatal(err)
	}
	return &Client{con}, pid
}

// cpuTime is what all threads of a process have run, in nanoseconds; 0 for process 0.
func cpuTime(b *testing.B, pid int) (ns uint64) {
	b.Helper()
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range list {
		text, _ := os.ReadFile(path)
		var ran uint64
		_, _ = fmt.Sscan(string(text), &ran)
		ns += ran
	}
	return ns
}
