package netfs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/golden"
)

// named is a mount of NFS as parsed.
type named struct {
	point string
	sample.MountCounters
}

func parseAll(text []byte) (all []named) {
	eachNFS(text, func(point []byte, c *sample.MountCounters, _ time.Duration) {
		all = append(all, named{mount.Unescape(string(point)), *c})
	})
	return all
}

// Texts that begin with "recorded" are of real mounts, by Debian's kernels 6.1 and 6.12 (lab/netmount prints
// them with -keep). The others were written from the sources of several kernels.
func texts(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 17 {
		t.Fatalf("got %d texts, %v, want at least 17", len(paths), err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = text
	}
	return all
}

func TestNFSOfSeveralKernels(t *testing.T) {
	all := map[string]map[string]sample.MountCounters{}
	for name, text := range texts(t) {
		all[name] = map[string]sample.MountCounters{}
		for _, n := range parseAll(text) {
			all[name][n.point] = n.MountCounters
		}
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/nfs.golden.json", append(got, '\n'))
}

// prometheus/procfs reads the same numbers, where it reads a text at all: one line that it does not know makes it
// refuse the whole file.
func TestNFSAgainstProcfs(t *testing.T) {
	compared := 0
	for name, text := range texts(t) {
		root := t.TempDir()
		fixture.Write(t, root, "proc/1/mountstats", text)
		fs, err := procfs.NewFS(root + "/proc")
		if err != nil {
			t.Fatal(err)
		}
		process, err := fs.Proc(1)
		if err != nil {
			t.Fatal(err)
		}
		mounts, err := process.MountStats()
		if err != nil {
			t.Logf("%s: procfs: %v", name, err)
			continue
		}
		ours := parseAll(text)
		for _, m := range mounts {
			stats, ok := m.Stats.(*procfs.MountStatsNFS)
			if !ok {
				continue
			}
			if len(ours) == 0 || ours[0].point != mount.Unescape(m.Mount) {
				t.Errorf("%s: got %+v, want the mount %s next", name, ours, m.Mount)
				break
			}
			compared++
			compare(t, name+" "+m.Mount, &ours[0].MountCounters, stats)
			ours = ours[1:]
		}
		if len(ours) > 0 {
			t.Errorf("%s: got %+v more than procfs", name, ours)
		}
	}
	if compared < 16 {
		t.Errorf("compared %d mounts, want at least 16", compared)
	}
}

func compare(t *testing.T, name string, got *sample.MountCounters, stats *procfs.MountStatsNFS) {
	t.Helper()
	want := map[string]sample.MountOperations{}
	var again, timeouts uint64
	for _, o := range stats.Operations {
		class := "other"
		switch o.Operation {
		case "READ", "READ_PLUS":
			class = "read"
		case "WRITE":
			class = "write"
		}
		w := want[class]
		w.Operations += o.Requests
		w.Queue += time.Duration(o.CumulativeQueueMilliseconds) * time.Millisecond
		w.RoundTrip += time.Duration(o.CumulativeTotalResponseMilliseconds) * time.Millisecond
		w.Time += time.Duration(o.CumulativeTotalRequestMilliseconds) * time.Millisecond
		want[class] = w
		again += o.Transmissions - o.Requests
		timeouts += o.MajorTimeouts
	}
	r, w := want["read"], want["write"]
	r.Bytes, w.Bytes = stats.Bytes.ReadTotal, stats.Bytes.WriteTotal
	if got.Read != r || got.Write != w || got.Other != want["other"] {
		t.Errorf("%s: got %+v, want %+v, %+v, %+v", name, got, r, w, want["other"])
	}
	if got.Retransmissions != again || got.Timeouts != timeouts {
		t.Errorf("%s: got %d retransmissions and %d timeouts, want %d and %d", name, got.Retransmissions, got.Timeouts,
			again, timeouts)
	}
	if called := stats.Bytes.Read + stats.Bytes.DirectRead; got.Called != called {
		t.Errorf("%s: got %d bytes by calls, want %d", name, got.Called, called)
	}
	if got.Connections != len(stats.Transport) {
		t.Errorf("%s: got %d connections, want %d", name, got.Connections, len(stats.Transport))
	}
}

// FuzzNFS gives the parser any text: it ends, and finds no negative time.
func FuzzNFS(f *testing.F) {
	for _, text := range texts(f) {
		f.Add(text)
	}
	f.Add([]byte("device a mounted on /b with fstype nfs4 statvers=1.1\nper-op statistics\n" +
		"READ: 1 0 18446744073709551615 1 1 1 " +
		"18446744073709551615 9223372036854775807\nREAD: 1 9 18446744073709551615 1 1 1 18446744073709551615 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, n := range parseAll(text) {
			for _, o := range []sample.MountOperations{n.Read, n.Write, n.Other} {
				if o.Queue < 0 || o.RoundTrip < 0 || o.Time < 0 {
					t.Errorf("got %+v, want no negative time", o)
				}
			}
			if !bytes.Contains(text, []byte("statvers=")) {
				t.Errorf("got %+v of a text without counters", n)
			}
		}
	})
}

// FuzzOthers gives the other parsers any text.
func FuzzOthers(f *testing.F) {
	f.Add([]byte(lustre212))
	f.Add([]byte(ceph517latency))
	f.Add([]byte(nvfsStats))
	f.Add([]byte("read_bytes 1 samples [bytes] 1 1 18446744073709551615\n" +
		"read 2 samples [usecs] 1 1 18446744073709551615\n"))
	f.Add([]byte("item total avg_lat(us)\nread 18446744073709551615 18446744073709551615\nread 1 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c sample.MountCounters
		parseLustre(text, &c)
		parseCeph(text, &c)
		parseDirect(text)
		if c.Read.Time < 0 || c.Write.Time < 0 || c.Other.Time < 0 {
			t.Errorf("got %+v, want no negative time", c)
		}
	})
}
