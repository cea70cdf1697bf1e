package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// All threads of the agent have coarse timers, also that which Go starts before any code of ours.
func TestAgentHasCoarseTimers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to read the slack of other processes")
	}
	v, _ := startAgent(t, socketIn(t))
	defer stop(t, v)
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(v.Process.Pid) + "/task/*")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(filepath.Join("/proc", filepath.Base(thread), "timerslack_ns"))
		if os.IsNotExist(err) {
			continue // it has ended
		}
		if slack := strings.TrimSpace(string(text)); err != nil || slack != strconv.Itoa(int(timerSlack)) {
			t.Errorf("thread %s: slack %q, %v", filepath.Base(thread), slack, err)
		}
	}
}
