package follow_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stallspan/stallspan/internal/monitor"
)

// A process is in the job of its parent before the first reading of it, and not in that of an earlier process with the
// number of its parent.
func TestYoungChildIsInTheJobOfItsParent(t *testing.T) {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	c := exec.Command("sleep", "300")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	own := os.Getpid()
	for _, test := range []struct {
		name string
		jobs map[int]string
		want bool
	}{
		{"none", nil, false},
		{"of its parent", map[int]string{own: m.Jobs.JobOf(own)}, true},
		{"of an earlier process", map[int]string{own: "process 1 of 1"}, false},
	} {
		if got := m.Jobs.InHolder(c.Process.Pid, test.jobs); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
