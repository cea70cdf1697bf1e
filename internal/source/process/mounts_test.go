package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func points(mounts []sample.Mount) []string {
	list := make([]string, len(mounts))
	for i, m := range mounts {
		list[i] = m.Point
	}
	slices.Sort(list)
	return list
}

func TestMounts(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	source := New(tree.root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	source.lookNow()
	first := read(t, source)
	// No folder, no device node, no pipe; and the data set, which is open in the worker.
	if got := points(first.Jobs[0].Mounts); !slices.Equal(got, []string{"/data", "/dev/shm", "/models"}) {
		t.Errorf("mounts %v", got)
	}
	seen := first.Jobs[0].Mounts[0].LastSeen
	if seen <= 0 || seen > first.At.Mono {
		t.Errorf("seen at %v, read at %v", seen, first.At.Mono)
	}
	index := slices.IndexFunc(first.Jobs[0].Mounts, func(m sample.Mount) bool { return m.Point == "/data" })
	want := sample.Mount{
		ID:       42,
		Point:    "/data",
		Type:     "nfs4",
		Source:   "filer:/export/data",
		Root:     "/",
		Minor:    51,
		LastSeen: seen,
	}
	if first.Jobs[0].Mounts[index] != want {
		t.Errorf("got %+v, want %+v", first.Jobs[0].Mounts[index], want)
	}

	// The weights are closed, a file on a new mount is opened.
	tree.write(100, "fdinfo/3", "flags:\t0100000\nmnt_id:\t50\n")
	tree.write(100, "mountinfo", "50 27 259:2 / /fast rw - ext4 /dev/nvme1n1 rw\n")
	folder := "sys/devices/nvme1n1/nvme1n1p2"
	fixture.Write(t, tree.root, folder+"/partition", nil)
	fixture.Write(t, tree.root, "sys/class/block/x", nil)
	fixture.Write(t, tree.root, "sys/dev/block/x", nil)
	for _, link := range []string{"sys/dev/block/259:2", "sys/class/block/nvme1n1p2"} {
		if err := os.Symlink("../../../"+folder, filepath.Join(tree.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	source.lookNow()
	job := read(t, source).Jobs[0]
	for _, m := range job.Mounts {
		want := ""
		if m.Point == "/fast" {
			want = "nvme1n1"
		}
		if m.Device != want {
			t.Errorf("%s: got device %q, want %q", m.Point, m.Device, want)
		}
	}
	if got := points(job.Mounts); !slices.Equal(got, []string{"/data", "/dev/shm", "/fast", "/models"}) {
		t.Errorf("mounts %v", got)
	}
	for _, m := range job.Mounts {
		if m.Point == "/models" != (m.LastSeen == seen) {
			t.Errorf("%s was last seen at %v, the first look was at %v", m.Point, m.LastSeen, seen)
		}
	}
	if first.Jobs[0].Mounts[0].LastSeen != seen {
		t.Error("an earlier sample has changed")
	}
	last := source.jobs[0].mounts.seen[len(job.Mounts)-1]
	if last.Point != "/models" {
		t.Errorf("last in the list is %s, which is not the longest unseen", last.Point)
	}
}

func TestMountsAreBounded(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	var list strings.Builder
	for id := 100; id < 400; id++ {
		fmt.Fprintf(&list, "%d 27 8:%d / /m%d rw - ext4 /dev/sda rw\n", id, id, id)
		tree.write(103, fmt.Sprintf("fdinfo/%d", id), fmt.Sprintf("flags:\t0100000\nmnt_id:\t%d\n", id))
	}
	tree.write(103, "mountinfo", list.String())
	source := New(tree.root)
	t.Cleanup(source.Close)
	if err := source.Add("train", 103, Options{}); err != nil {
		t.Fatal(err)
	}
	j := source.jobs[0]
	all := make(map[int]bool)
	for look := range 6 { // a budget of 50 files reaches all 300 in six looks
		j.scanFiles(source, 50, time.Duration(look+1))
		if len(j.mounts.seen) > maxMounts {
			t.Fatalf("%d mounts", len(j.mounts.seen))
		}
		for _, m := range j.mounts.seen {
			all[m.ID] = true
		}
	}
	if len(all) != 300 {
		t.Errorf("%d of 300 open files were looked at", len(all))
	}
}

func TestRealMounts(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source := New("")
	defer source.Close()
	if err := source.Add("self", os.Getpid(), Options{}); err != nil {
		t.Skip(err)
	}
	job := lookedAt(t, source)
	if !slices.ContainsFunc(job.Mounts,
		func(m sample.Mount) bool { return strings.HasPrefix(file.Name(), strings.TrimSuffix(m.Point, "/")+"/") }) {
		t.Errorf("%s is open, and the mounts are %+v", file.Name(), job.Mounts)
	}
	for _, m := range job.Mounts {
		if m.Type == "proc" || m.Type == "devtmpfs" {
			t.Errorf("mount %+v", m)
		}
	}
}

func FuzzFDInfo(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t02100000\nmnt_id:\t26\nino:\t4\n"))
	f.Add([]byte("flags:\t0200000\nmnt_id:\t26"))
	f.Add([]byte("mnt_id:\t99999999999999999999"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if f, ok := parseFDInfo(text); ok && f.Mount < 0 {
			t.Errorf("mount %d", f.Mount)
		}
	})
}
