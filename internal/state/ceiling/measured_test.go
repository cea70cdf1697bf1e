package ceiling

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/internal/sample"
)

func measurement(name string) Measured {
	return Measured{Disk: name, Identity: "size=1 serial=" + name, Read: 1e9, Await: 1e-4, At: time.Unix(1e9, 0).UTC()}
}

// A measurement replaces an earlier one of the same disk, and the newest are kept.
func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "ceilings.json")
	if all, err := Load(path); err != nil || all != nil {
		t.Fatalf("no file: got %v, %v; want nothing", all, err)
	}
	sda, sdb := measurement("sda"), measurement("sdb")
	faster := sda
	faster.Disk, faster.Read = "sdc", 2e9 // renamed by the kernel
	for _, m := range []Measured{sdb, sda, faster} {
		if err := Store(path, m); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Load(path)
	if diff := cmp.Diff([]Measured{sdb, faster}, all); err != nil || diff != "" {
		t.Errorf("Load: %v, -want +got:\n%s", err, diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
	}
	for i := range maxMeasured + 10 {
		m := measurement(fmt.Sprintf("sd%04d", i))
		m.At = m.At.Add(time.Duration(i+1) * time.Second)
		if err := Store(path, m); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = Load(path); err != nil || len(all) != maxMeasured || all[0].Disk != "sd0010" {
		t.Errorf("got %d measurements from %v on, %v; want %d from sd0010 on", len(all), all[:1], err, maxMeasured)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 2 {
		t.Errorf("got files %v, want the file and its lock", files)
	}
}

// Programs that write at once lose none of each other's measurements.
func TestStoreConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ceilings.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := Store(path, measurement(fmt.Sprint("sd", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := Load(path); err != nil || len(got) != 20 {
		t.Errorf("got %d measurements, %v; want 20", len(got), err)
	}
}

// A file of version 1 without a checksum is from before version 0.1.
func TestOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ceilings.json")
	text := `{
  "version": 1,
  "disks": [
    {"disk":"sda","identity":"size=1 serial=sda",
     "read_bytes_per_second":1e9,"await_seconds":1e-4,"measured_at":"2001-09-09T01:46:40Z"}
  ]
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Load(path)
	if diff := cmp.Diff([]Measured{measurement("sda")}, all); err != nil || diff != "" {
		t.Errorf("Load: %v, -want +got:\n%s", err, diff)
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ceilings.json")
	for _, text := range []string{
		"{}", `{"version":2,"disks":[]}`, `{"version":1,"disks":[{}]}`,
		`{"version":1,"disks":[{"disk":"sda","identity":"x","read_bytes_per_second":1e300,"await_seconds":1}]}`,
		strings.Repeat(" ", 1<<20) + `{"version":1}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.80q: got error %v, want one with the path", text, err)
		}
		if err := Store(path, measurement("sda")); err != nil {
			t.Errorf("%.80q: Store: got error %v, want a new file", text, err)
		}
	}
	if _, err := Load(filepath.Dir(path)); err == nil {
		t.Error("a folder: got no error, want one")
	}
	bad := measurement("sda")
	bad.Read = 0
	if err := Store(path, bad); err == nil {
		t.Error("a throughput of 0: got no error, want one")
	}
}

func FuzzLoad(f *testing.F) {
	const disk = `{"version":1,"disks":[{"disk":"sda","identity":"size=1","read_bytes_per_second":%s,"await_seconds":0.1}]}`
	f.Add(fmt.Appendf(nil, disk, "1e9"))
	f.Add(fmt.Appendf(nil, disk, "-1"))
	path := filepath.Join(f.TempDir(), "ceilings.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Load(path)
		if err != nil && len(all) > 0 {
			t.Errorf("got %v and error %v, want one of them", all, err)
		}
		for _, m := range all {
			if !m.valid() {
				t.Errorf("got the invalid measurement %+v", m)
			}
		}
	})
}

// machine returns a folder with these disks in /sys/class/block.
func machine(t *testing.T, disks map[string]map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, files := range disks {
		for file, text := range files {
			path := filepath.Join(root, "sys/class/block", name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestIdentity(t *testing.T) {
	root := machine(t, map[string]map[string]string{
		"nvme0n1":   {"size": "1000\n", "wwid": "eui.0011\n", "device/model": "Fast  Drive   \n", "device/serial": "S1 \n"},
		"sda":       {"size": "2000\n", "device/model": "Spins\n", "device/wwid": "naa.5000\n"},
		"vda":       {"size": "3000\n", "serial": ""},
		"vdb":       {"size": "3000\n", "serial": "data\n"},
		"loop0":     {"size": "10\n", "loop/backing_file": "/images/a b.img\n"},
		"loop1":     {"size": "0\n"},
		"cciss!c0d": {"size": "5\n"},
		"sdz":       {"size": "6\n", "device/model": strings.Repeat("x", 5000), "device/serial": "a\x00\xff\x1b[2Jb\n"},
	})
	for name, want := range map[string]string{
		"nvme0n1": "size=1000 model=Fast Drive serial=S1 wwid=eui.0011", "sda": "size=2000 model=Spins wwid=naa.5000",
		"vda": "size=3000 name=vda", "vdb": "size=3000 serial=data", "loop0": "size=10 file=/images/a b.img", "loop1": "",
		"cciss/c0d": "size=5 name=cciss/c0d", "nosuch": "",
	} {
		if got := Identify(root, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := Identify(root, "sdz"); len(got) > maxIdentity || strings.ContainsAny(got, "\x00\x1b\n") {
		t.Errorf("got %q, want at most %d printable bytes", got, maxIdentity)
	}
}

// Measurements belong to the disks, whatever their names are now. Another disk with the same name has none.
func TestPresent(t *testing.T) {
	files := func(serial string) map[string]string {
		return map[string]string{"size": "1\n", "serial": serial + "\n"}
	}
	all := []Measured{measurement("sda"), measurement("sdb"),
		{Disk: "vda", Identity: "size=7 name=vda", Read: 5, Await: 2e-3}}
	got := Present(machine(t, map[string]map[string]string{
		"sda": files("sdb"), "sdb": files("other"), "vda": {"size": "8"},
	}), all)
	want := []sample.Ceiling{{Disk: "sda", Read: 1e9, ReadAwait: 100 * time.Microsecond}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = Present(machine(t, map[string]map[string]string{"vda": {"size": "7"}}), all)
	want = []sample.Ceiling{{Disk: "vda", Read: 5, ReadAwait: 2 * time.Millisecond}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A measurement is a lower bound of the ceiling, until the disk is replaced.
func TestKnow(t *testing.T) {
	var l learner
	l.Know([]sample.Ceiling{{Disk: "sda", Read: 100 << 20, ReadAwait: time.Millisecond}, {Disk: "sdq", Read: 1}})
	if got := l.All(); len(got) != 0 {
		t.Errorf("before any reading: got %v, want nothing", got)
	}
	at := time.Hour
	read := func(total uint64) sample.Ceiling {
		at += time.Second
		l.Learn(disksAt(at, leaf("sda", total, 0)))
		if all := l.All(); len(all) == 1 {
			return all[0]
		}
		return sample.Ceiling{}
	}
	expect := func(when string, got sample.Ceiling, read float64, await time.Duration) {
		t.Helper()
		if got.Read != read || got.ReadAwait != await {
			t.Errorf("%s: got %+v, want %v bytes/s and %v", when, got, read, await)
		}
	}
	const mib = 1 << 20
	expect("measured", read(0), 100*mib, time.Millisecond)
	expect("slower", read(50*mib), 100*mib, time.Millisecond)
	expect("faster", read(250*mib), 200*mib, time.Millisecond)
	expect("replaced", read(0), 0, 0)
	l.Know([]sample.Ceiling{{Disk: "sda", Read: 100 * mib, ReadAwait: time.Millisecond}})
	l.Know(nil)
	expect("forgotten", read(mib), mib, 0)
}
