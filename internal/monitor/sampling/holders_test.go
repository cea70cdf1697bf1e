package sampling

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// A process is followed at once when the driver lists it for the first time.
func TestNewHolders(t *testing.T) {
	r, err := New(Config{Interval: 1}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	list := func(read bool, pids ...int) (reported bool) {
		s := &sample.Sample{At: sample.Now(), GPUProcessesRead: read, GPUs: []sample.GPU{{ID: "a"}}}
		for _, pid := range pids {
			s.GPUProcesses = append(s.GPUProcesses, sample.GPUProcess{GPU: "a", PID: pid})
		}
		r.Append("gpu", s, nil)
		select {
		case <-r.NewHolders():
			return true
		default:
			return false
		}
	}
	for i, step := range []struct {
		reported, want bool
	}{
		{list(true), false},
		{list(true, 7), true},
		{list(true, 7), false},
		{list(true, 7, 8), true},
		{list(true, 8), false},
		{list(false), false},
		{list(true, 8), false},
		{list(true, 7, 8), true},
	} {
		if step.reported != step.want {
			t.Errorf("list %d: got %v, want %v", i, step.reported, step.want)
		}
	}
}
