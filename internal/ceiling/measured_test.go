package ceiling

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func disks(name string) Measured {
	return Measured{Disk: name, Identity: "size=1 serial=" + name, Read: 1e9, Await: 1e-4, At: time.Unix(1e9, 0).UTC()}
}

// What is stored is loaded, by the identity of the disk, and the newest that fit are kept.
func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "ceilings.json")
	if all, err := Load(path); err != nil || all != nil {
		t.Fatal(all, err)
	}
	sda, sdb := disks("sda"), disks("sdb")
	faster := sda
	faster.Disk, faster.Read = "sdc", 2e9 // it has another name by now
	for _, m := range []Measured{sdb, sda, faster} {
		if err := Store(path, m); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Load(path)
	if err != nil || !slices.Equal(all, []Measured{sdb, faster}) {
		t.Errorf("%+v, %v", all, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	for i := range mostMeasured + 10 {
		m := disks(fmt.Sprintf("sd%04d", i))
		m.At = m.At.Add(time.Duration(i+1) * time.Second)
		if err := Store(path, m); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = Load(path); err != nil || len(all) != mostMeasured || all[0].Disk != "sd0010" {
		t.Errorf("%d, %v", len(all), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// Programs that write at once lose nothing of each other.
func TestStoreAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ceilings.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := Store(path, disks(fmt.Sprint("sd", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := Load(path); err != nil || len(got) != 20 {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestDamage(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ceilings.json")
	for text, want := range map[string]error{
		"": errDamaged, "{}": errDamaged, `{"version":2,"disks":[]}`: errNewer, `{"version":1,"disks":[{}]}`: errDamaged,
		`{"version":1,"disks":[{"disk":"sda","identity":"x","read_bytes_per_second":1e300,"await_seconds":1}]}`: errDamaged,
		strings.Repeat(" ", mostFile) + `{"version":1}`:                                                         errDamaged,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want.Error()) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.80q: %v", text, err)
		}
		err = Store(path, disks("sda"))
		if (err == nil) != errors.Is(want, errDamaged) {
			t.Errorf("%.80q: stored: %v", text, err)
		}
	}
	if _, err := Load(folder); err == nil {
		t.Error("a folder is no file")
	}
	bad := disks("sda")
	bad.Read = 0
	if err := Store(path, bad); err == nil {
		t.Error("nothing was stored")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"disks":[{"disk":"sda","identity":"size=1","read_bytes_per_second":1e9,"await_seconds":0.1,"measured_at":"2026-11-21T00:00:00Z"}]}`))
	f.Add([]byte(`{"version":1,"disks":[{"disk":"sda","identity":"size=1","read_bytes_per_second":-1,"await_seconds":0.1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(bytes.NewReader(text))
		if err != nil && len(all) > 0 {
			t.Error("both")
		}
		for _, m := range all {
			if !m.usable() {
				t.Errorf("%+v", m)
			}
		}
	})
}

// machine is a folder with the /sys/class/block of these disks.
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
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := Identify(root, "sdz"); len(got) > mostIdentity || strings.ContainsAny(got, "\x00\x1b\n") {
		t.Errorf("%q", got)
	}
}

// What was measured is of the disks that are there, whatever their names are now. Another disk of the same name has none.
func TestHere(t *testing.T) {
	files := func(serial string) map[string]string {
		return map[string]string{"size": "1\n", "serial": serial + "\n"}
	}
	all := []Measured{disks("sda"), disks("sdb"), {Disk: "vda", Identity: "size=7 name=vda", Read: 5, Await: 2e-3}}
	got := Here(machine(t, map[string]map[string]string{"sda": files("sdb"), "sdb": files("other"), "vda": {"size": "8"}}), all)
	want := []sample.Ceiling{{Disk: "sda", Read: 1e9, ReadAwait: 100 * time.Microsecond}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	got = Here(machine(t, map[string]map[string]string{"vda": {"size": "7"}}), all)
	if len(got) != 1 || got[0] != (sample.Ceiling{Disk: "vda", Read: 5, ReadAwait: 2 * time.Millisecond}) {
		t.Errorf("%+v", got)
	}
}

// What was measured is a floor under what is learned, until the disk is another one.
func TestKnow(t *testing.T) {
	var l learner
	l.Know([]sample.Ceiling{{Disk: "sda", Read: 100 << 20, ReadAwait: time.Millisecond}, {Disk: "sdq", Read: 1}})
	if got := l.All(); len(got) != 0 {
		t.Errorf("of disks that nobody saw: %v", got)
	}
	at := time.Hour
	read := func(total uint64) sample.Ceiling {
		at += time.Second
		l.Learn(reading(at, leaf("sda", total, 0)))
		if all := l.All(); len(all) == 1 {
			return all[0]
		}
		return sample.Ceiling{}
	}
	measured := sample.Ceiling{Disk: "sda", Read: 100 << 20, ReadAwait: time.Millisecond}
	if got := read(0); got != measured {
		t.Errorf("%+v", got)
	}
	if got := read(50 << 20); got != measured {
		t.Errorf("slower: %+v", got)
	}
	if got := read(250 << 20); got.Read != 200<<20 || got.ReadAwait != time.Millisecond {
		t.Errorf("faster: %+v", got)
	}
	if got := read(0); got.Read != 0 || got.ReadAwait != 0 {
		t.Errorf("another disk has its name: %+v", got)
	}
	l.Know([]sample.Ceiling{measured})
	l.Know(nil)
	if got := read(1 << 20); got.ReadAwait != 0 || got.Read != 1<<20 {
		t.Errorf("forgotten: %+v", got)
	}
}
