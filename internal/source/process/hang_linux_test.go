package process

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/hang"
)

// A reading does not wait for a process for which the kernel does not answer: it has the other jobs, and says what it
// lacks. Whether that process is a program of its own stays open.
func TestReadingsDuringAHang(t *testing.T) {
	for _, how := range []string{hang.Memory, hang.Exec} {
		t.Run(how, func(t *testing.T) {
			other, _ := fixture.Sleeper(t)
			p := hang.Start(t, hang.Options{How: how})
			source := New("/")
			t.Cleanup(source.Close)
			read := make(chan struct{})
			var reading sample.Sample
			var err error
			var launched bool
			go func() {
				defer close(read)
				_ = source.Add("stuck", p.PID, Options{}) // refused if the kernel shows nothing of it
				if err = source.Add("other", other, Options{}); err != nil {
					return
				}
				err = source.Read(&reading)
				if one := source.jobs[0].members[0]; one.pid == p.PID {
					launched = source.launched(one, one)
					one.waitsForChild()
				}
			}()
			select {
			case <-p.Released:
				t.Error("a reading waits for the process")
				<-read
			case <-read:
			}
			known := func(id string) bool {
				return slices.ContainsFunc(reading.Jobs, func(j sample.Job) bool { return j.ID == id && j.HasIO })
			}
			if err != nil && !errors.Is(err, syscall.ETIMEDOUT) || !known("other") ||
				known("stuck") != (how == hang.Memory) || launched {
				t.Errorf("got %+v and %v, want the bytes of the other job, and no program launched", reading.Jobs, err)
			}
		})
	}
}
