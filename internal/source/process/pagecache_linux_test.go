package process

import (
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// What a job's reads leave in the page cache is seen at both ends of a window, and so is a file that is open past it.
func TestPageCacheAtEdges(t *testing.T) {
	const size = 256 << 20 // others on this machine read and write, too
	file := writeFile(t, size)
	path := file.Name()
	forget(t, file, size)
	if pagecache.OfMachine("/") == (sample.PageCache{}) {
		t.Skip("needs the counts of the page cache (Linux 5.8)")
	}
	shell := startShell(t, &syscall.SysProcAttr{})
	source := New("")
	defer source.Close()
	if err := source.Add("sh", shell.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	read := func() sample.Job {
		t.Helper()
		time.Sleep(memoryAtEdges)
		out := sample.Sample{Edge: true}
		if err := source.Read(&out); err != nil {
			t.Fatal(err)
		}
		return out.Jobs[0]
	}
	for name, c := range map[string]struct {
		command string
		stays   bool
	}{
		"read":   {"cat " + path + " >/dev/null", true},
		"direct": {"dd if=" + path + " iflag=direct bs=1M of=/dev/null 2>/dev/null", false},
		"nocache": {"dd if=" + path + " iflag=nocache bs=1M of=/dev/null 2>/dev/null; dd if=" + path +
			" iflag=nocache count=0 2>/dev/null", false},
	} {
		best := int64(-1)
		for range 5 { // others may read or drop as much meanwhile
			forget(t, file, size)
			before := read().PageCache.Kept
			shell.do(c.command)
			kept := read().PageCache.Kept - before
			if best = kept; (kept > size/2) == c.stays {
				break
			}
		}
		if (best > size/2) != c.stays {
			t.Errorf("%s: %d of %d bytes stayed", name, best, size)
		}
	}
	shell.do("exec 3<" + path)
	if !seenDirect(read(), false) {
		t.Error("a file is open: it is not direct")
	}
	python := "exec python3 -c 'import os, time; os.open(\"" + path + "\", os.O_RDONLY | os.O_DIRECT); time.sleep(60)' &"
	shell.do(python)
	for end := time.Now().Add(20 * time.Second); !seenDirect(read(), true); {
		if time.Now().After(end) {
			t.Fatal("the file that is open with O_DIRECT was not seen")
		}
	}
}

// seenDirect reports whether one of a job's mounts had a file open past the page cache, or whether none had.
func seenDirect(j sample.Job, want bool) bool {
	for i := range j.Mounts {
		if j.Mounts[i].Direct > 0 {
			return want
		}
	}
	return !want
}
