package netmount

import (
	"crypto/rand"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/netfs"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/lab/mounts/ways"
)

var keep = flag.Bool("keep", false, "print the texts of mountstats, to be kept as fixtures")

const mib = 1 << 20

// A copy of this program has this variable, in namespaces of its own.
const inside = "STALLSPAN_TEST_NAMESPACES"

func TestMain(m *testing.M) {
	if ways.Serve() {
		return
	}
	flag.Parse()
	// No other process sees these mounts and the kernel's server. The source reads the mounts of process 1.
	if os.Getuid() == 0 && os.Getenv(inside) == "" && knows("nfs") {
		again := exec.Command("unshare", append([]string{"-mnpf", "--mount-proc", os.Args[0]}, os.Args[1:]...)...)
		again.Env = append(os.Environ(), inside+"=1")
		again.Stdout, again.Stderr = os.Stdout, os.Stderr
		if again.Run() != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var versions = []string{"3", "4.0", "4.1", "4.2"}

// knows reports whether the kernel has a file system now.
func knows(name string) bool {
	text, _ := os.ReadFile("/proc/filesystems") // without it, none is known
	return strings.Contains(string(text), "\t"+name+"\n")
}

// open mounts a new folder, with files, or skips the test.
func open(t *testing.T, version, options string, files map[string]int64) *Share {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	if !knows("nfs") {
		t.Skip("the kernel has no client of NFS, or its module is not loaded")
	}
	if version != "3" && !knows("nfsd") {
		t.Skip("the kernel has no server of NFS, or its module is not loaded")
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v: %s", err, out)
	}
	folder, dir := t.TempDir(), t.TempDir()
	for name, size := range files {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(version, folder, dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		keepText(t, version)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keepText keeps what the kernel counted.
func keepText(t *testing.T, version string) {
	if !*keep {
		return
	}
	var name unix.Utsname
	text, err := os.ReadFile("/proc/self/mountstats")
	if err == nil {
		err = unix.Uname(&name)
	}
	if err != nil {
		t.Error(err)
		return
	}
	release := unix.ByteSliceToString(name.Release[:])
	t.Logf("KEEP %s-v%s %s\n%s", release, version, t.Name(), text)
}

// counted returns what the source reads of the only mount of NFS.
func counted(t *testing.T, s *Share) sample.MountCounters {
	t.Helper()
	source := netfs.New("")
	defer source.Close()
	out := sample.Sample{Edge: true}
	if err := source.Read(&out); err != nil {
		t.Fatal(err)
	}
	for _, c := range out.MountCounters {
		if c.Point == s.Dir {
			return c
		}
	}
	t.Fatalf("got %+v, want the mount %s", out.MountCounters, s.Dir)
	return sample.MountCounters{}
}

// logged are the sums of a log.
type logged struct {
	operations uint64
	bytes      uint64
	again      uint64
	time       time.Duration // from a request to its answer
}

func sums(calls []Call) map[Class]logged {
	all := map[Class]logged{}
	for _, c := range calls {
		l := all[c.Class]
		if c.Again {
			l.again++
		}
		if !c.Answered.IsZero() {
			l.operations++
			l.bytes += uint64(c.Size)
			l.time += c.Answered.Sub(c.Arrived)
		}
		all[c.Class] = l
	}
	return all
}

// cold drops a file from the page cache, and opens it.
func cold(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if err := pagecache.Forget(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCountersOfRealMounts compares what is read of the kernel with the log between it and the server.
func TestCountersOfRealMounts(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			const size, delay = 8 * mib, 50 * time.Millisecond
			s := open(t, version, "", map[string]int64{"model.safetensors": size, "small/a": 100, "small/b": 100})
			s.Delay(Read, delay)
			s.Delay(Other, 10*time.Millisecond)
			file := cold(t, filepath.Join(s.Dir, "model.safetensors"))
			before, began := counted(t, s), time.Now()
			buffer := make([]byte, mib)
			for range size / mib {
				if _, err := file.Read(buffer); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.ReadDir(filepath.Join(s.Dir, "small")); err != nil {
				t.Fatal(err)
			}
			elapsed := time.Since(began)
			time.Sleep(200 * time.Millisecond) // the rest of what was read ahead
			after, log := counted(t, s), sums(s.Log(began))
			read := grown(before.Read, after.Read)
			server := log[Read]
			t.Logf("NFS %s: %d reads of %d bytes, queue %v, round trip %v, time %v in %v; the server's: %d, %d bytes, %v",
				version, read.Operations, read.Bytes, read.Queue, read.RoundTrip, read.Time, elapsed, server.operations,
				server.bytes, server.time)
			if read.Operations != server.operations || read.Bytes != server.bytes || read.Bytes != size {
				t.Errorf("got %d reads of %d bytes, want %d of %d", read.Operations, read.Bytes, server.operations,
					server.bytes)
			}
			// An answer is noted after it was written, which may be later than it was read.
			if read.RoundTrip < server.time-time.Duration(server.operations)*delay/5 ||
				read.RoundTrip > server.time*3/2 {
				t.Errorf("got a round-trip time of %v, want the server's %v, or up to half more", read.RoundTrip, server.time)
			}
			if read.Time < read.RoundTrip || read.Queue > read.Time {
				t.Errorf("got a queue of %v and a round trip of %v in %v", read.Queue, read.RoundTrip, read.Time)
			}
			if called := after.Called - before.Called; called != size {
				t.Errorf("got %d bytes by calls, want %d", called, size)
			}
			other := grown(before.Other, after.Other)
			t.Logf("other: %d, round trip %v, time %v; the server's: %d, %v", other.Operations, other.RoundTrip,
				other.Time, log[Other].operations, log[Other].time)
			if other.Operations != log[Other].operations || other.Operations == 0 {
				t.Errorf("got %d other operations, want %d", other.Operations, log[Other].operations)
			}
			if after.Retransmissions != 0 || after.Timeouts != 0 || after.Connections != 1 {
				t.Errorf("got %d retransmissions, %d timeouts, %d connections, want none, none, 1", after.Retransmissions,
					after.Timeouts, after.Connections)
			}
			if after.ReadSize < 128<<10 {
				t.Errorf("got a read size of %d bytes, want 128 KiB or more", after.ReadSize)
			}
			if age := time.Since(after.Began.Wall); age < 0 || age > time.Minute {
				t.Errorf("got a mount of %v ago", age)
			}
		})
	}
}

func grown(before, after sample.MountOperations) sample.MountOperations {
	return sample.MountOperations{
		Operations: after.Operations - before.Operations, Bytes: after.Bytes - before.Bytes,
		Queue: after.Queue - before.Queue, RoundTrip: after.RoundTrip - before.RoundTrip, Time: after.Time - before.Time,
	}
}

// TestRetransmissionsOfRealMounts loses replies: version 3 asks again over the same connection after its time-out,
// version 4 once the connection has broken.
func TestRetransmissionsOfRealMounts(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			const size, lostReplies = 2 * mib, 3
			s := open(t, version, "timeo=20,retrans=2", map[string]int64{"model.safetensors": size})
			file := cold(t, filepath.Join(s.Dir, "model.safetensors"))
			before, began := counted(t, s), time.Now()
			s.Fail(lostReplies, version != "3")
			buffer := make([]byte, size)
			if _, err := file.ReadAt(buffer, 0); err != nil {
				t.Fatal(err)
			}
			elapsed := time.Since(began)
			after, log := counted(t, s), sums(s.Log(began))
			again := log[Read].again + log[Other].again
			got := after.Retransmissions - before.Retransmissions
			t.Logf("NFS %s: %d retransmissions, %d timeouts in %v; the proxy saw %d requests again", version, got,
				after.Timeouts-before.Timeouts, elapsed, again)
			if got != again || got < 1 {
				t.Errorf("got %d retransmissions, want %d, and at least 1", got, again)
			}
			if read := grown(before.Read, after.Read); read.Bytes != size {
				t.Errorf("got %d bytes, want %d", read.Bytes, size)
			}
		})
	}
}

// TestConnectionsOfRealMounts reads by several connections.
func TestConnectionsOfRealMounts(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := open(t, version, "nconnect=4", map[string]int64{"model.safetensors": 4 * mib})
			buffer := make([]byte, 4*mib)
			if _, err := cold(t, filepath.Join(s.Dir, "model.safetensors")).ReadAt(buffer, 0); err != nil {
				t.Fatal(err)
			}
			if c := counted(t, s); c.Connections != 4 || c.Read.Bytes != 4*mib {
				t.Errorf("got %d connections and %d bytes, want 4 and %d", c.Connections, c.Read.Bytes, 4*mib)
			}
		})
	}
}
