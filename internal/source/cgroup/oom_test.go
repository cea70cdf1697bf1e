package cgroup

import (
	"fmt"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// A process that enters another cgroup is killed by that one's limit. What that counted before is not its own, and
// where it was is known when it has ended.
func TestMovedProcessRunsOutOfMemory(t *testing.T) {
	root := t.TempDir()
	mounts(t, root, "30 24 0:26 / "+root+"/sys/fs/cgroup rw - cgroup2 cgroup rw\n")
	events := func(group string, n int) {
		fixture.Write(t, root, "sys/fs/cgroup"+group+"/memory.events", fmt.Appendf(nil, "oom %d\noom_kill %d\n", n, n))
	}
	in := func(group string) { fixture.Write(t, root, "proc/7/cgroup", []byte("0::"+group+"\n")) }
	fixture.Write(t, root, "sys/fs/cgroup/cgroup.procs", nil)
	fixture.Write(t, root, "proc/vmstat", []byte("oom_kill 3\n"))
	events("/job", 3)
	events("/job/first", 0)
	events("/job/limited", 3)
	in("/job/first")
	v := NewView(root)
	stays, moves := v.WatchOOM(7), v.WatchOOM(7)
	in("/job/limited")
	moves.Moved()
	if why := moves.Why(); why != "" {
		t.Errorf("got %q before the kill", why)
	}
	events("/job", 4)
	events("/job/limited", 4)
	in("/")
	moves.Moved()
	if got, want := moves.Why(), "out of memory, by the limit of the cgroup /job/limited"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if why := stays.Why(); why != "" {
		t.Errorf("got %q for a process that stayed in its cgroup", why)
	}
}
