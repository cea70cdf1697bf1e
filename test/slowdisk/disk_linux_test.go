package slowdisk

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

func held(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	found, _, err := pagecache.Resident(file)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSlowMakesFilesCold(t *testing.T) {
	for _, kind := range []Kind{Spinning, Network, Local} {
		t.Run(string(kind), func(t *testing.T) {
			d := opened(t, kind, Options{})
			path := filled(t, d, mib)
			if _, err := os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
			if held(t, path) == 0 {
				t.Skip("the page cache does not hold what was just read")
			}
			for range 2 { // the second time it is slow already
				if err := d.Slow(); err != nil {
					t.Fatal(err)
				}
				if left := held(t, path); left > 0 {
					t.Errorf("%d bytes are still in the page cache", left)
				}
				if _, err := os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSlowReportsFilesThatStayCached(t *testing.T) {
	d := opened(t, Spinning, Options{})
	path := filled(t, d, mib)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	mapping, err := unix.Mmap(int(file.Fd()), 0, mib, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Slow(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a mapped file counts as cold: %v", err)
	}
	if err := unix.Munmap(mapping); err != nil {
		t.Fatal(err)
	}
	if err := d.Slow(); err != nil {
		t.Error(err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, kind := range []Kind{Memory, Network} {
		t.Run(string(kind), func(t *testing.T) {
			d := opened(t, kind, Options{Size: minSize})
			if err := os.WriteFile(d.Dir+"/x", make([]byte, minSize+mib), 0o600); err == nil {
				t.Error("more fits than its size")
			}
			if err := d.Slow(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKilledParentLeavesNothing kills a program that has a slow disk, a reader included.
func TestKilledParentLeavesNothing(t *testing.T) {
	for _, kind := range []Kind{Spinning, Throttled, Network, Memory, Local} {
		t.Run(string(kind), func(t *testing.T) {
			need(t, kind)
			parent := exec.Command("/proc/self/exe")
			parent.Env = append(os.Environ(), parentVariable+"="+string(kind))
			parent.Stderr = os.Stderr
			output, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			_ = parent.Process.Kill()
			_ = parent.Wait()
			base, problem, _ := strings.Cut(strings.TrimSpace(line), " ")
			if err != nil || problem != "<nil>" {
				t.Fatalf("the parent says %q, %v", line, err)
			}
			for begin := time.Now(); remains(base) != ""; time.Sleep(10 * time.Millisecond) {
				if time.Since(begin) > 30*time.Second {
					t.Fatal("left: ", remains(base))
				}
			}
		})
	}
}

func TestKilledServerCanBeClosed(t *testing.T) {
	need(t, Spinning)
	d, err := Open(t.Context(), Spinning, Options{Size: minSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.guard.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil {
		t.Error("Close after the server was killed: got no error")
	} else {
		t.Log(err)
	}
	if left := remains(d.base); left != "" {
		t.Error("left: ", left)
	}
}

func TestUndoDoesNotWaitForEver(t *testing.T) {
	d := opened(t, Spinning, Options{})
	file, err := os.Open(filled(t, d, mib))
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(d.base, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("an open file is passed over: %v", err)
	}
	if _, err := file.Read(make([]byte, 1)); err != nil {
		t.Error("what is open can no longer be read: ", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenStopsWhenCancelled(t *testing.T) {
	need(t, Spinning)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Spinning, Options{}); err == nil {
		t.Error("opened all the same")
	}
}
