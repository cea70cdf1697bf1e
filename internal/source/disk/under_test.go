package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestUnder(t *testing.T) {
	tests := []struct {
		fixture, path, point, devices, disks string
	}{
		{"disk_laptop", "/", "/", "dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{"disk_laptop", "/home/anna/data/train.bin", "/", "dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{"disk_laptop", "/home/anna/link/../data/train.bin", "/", "dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{"disk_laptop", "/models/train.bin", "/", "dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{"disk_laptop", "/srv/data/train.bin", "/srv/data", "dm-1 dm-0 nvme0n1p3", "nvme0n1"}, // a bind mount
		{"disk_laptop", "/boot/efi/EFI", "/boot/efi", "nvme0n1p1", "nvme0n1"},
		{"disk_laptop", "/media/anna/My Disk/movie.mkv", "/media/anna/My Disk", "sda1", "sda"},
		{"disk_laptop", "/snap/core22/1380/bin", "/snap/core22/1380", "loop0 dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{
			"disk_laptop",
			"/snap/firefox/4793/x",
			"/snap/firefox/4793",
			"loop3 dm-1 dm-0 nvme0n1p3",
			"nvme0n1",
		}, // a deleted file
		{"disk_laptop", "/var/lib/docker/overlay2/77aa/merged/etc", "/var/lib/docker/overlay2/77aa/merged",
			"dm-1 dm-0 nvme0n1p3", "nvme0n1"},
		{"disk_laptop", "/dev/shm/cache", "/dev/shm", "", ""},
		{"disk_laptop", "/run/user/1000/doc/file", "/run/user/1000/doc", "", ""},

		{"disk_server", "/etc/fstab", "/", "", "sde"},
		{"disk_server", "/data/base/x", "/data", "md0 sda1 sdb1", "sda sdb"},
		{"disk_server", "/data/old/x", "/data/old", "", "sdf"}, // covers an NFS mount
		{"disk_server", "/fast/x", "/fast", "nvme0n1", "nvme0c0n1 nvme0c1n1"},
		{"disk_server", "/scratch/x", "/scratch", "dm-0", "sdc sdd"},
		{"disk_server", "/pool/x", "/pool", "", "sdg sdh"},
		{"disk_server", "/home/x", "/home", "", ""},
		{"disk_server", "/datasets/x", "/datasets", "", ""},
		{"disk_server", "/mnt/s3/x", "/mnt/s3", "", ""},
		{"disk_server", "/lustre/x", "/lustre", "", ""},
		{"disk_server", "/host/x", "/host", "", ""},
		{"disk_server", "/guest/x", "/guest", "", ""},
		{"disk_server", "/tank/x", "/tank", "", ""},
		{"disk_server", "/ro/x", "/ro", "md0 sda1 sdb1", "sda sdb"}, // read-only: one of its lower layers exists
		{"disk_server", "/broken/over/x/f", "/broken/over", "", ""}, // its layers do not exist here

		{"disk_vm", "/home/x", "/", "", "vda"},
		{"disk_vm", "/dev/shm/x", "/dev/shm", "", ""},
	}
	roots := make(map[string]string)
	for _, name := range []string{"disk_laptop", "disk_server", "disk_vm"} {
		roots[name] = fixture.Root(t, name)
	}
	for _, test := range tests {
		t.Run(test.fixture+test.path, func(t *testing.T) {
			root := roots[test.fixture]
			got, err := source(t, root).Under(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if got.Mount.Point != test.point || !slices.Equal(got.Disks, strings.Fields(test.disks)) ||
				!slices.Equal(got.Devices, strings.Fields(test.devices)) {
				t.Errorf("got %s: [%s] on %v, want %s: [%s] on [%s]", got.Mount.Point, strings.Join(got.Devices, " "), got.Disks,
					test.point, test.devices, test.disks)
			}
			again, err := source(t, root).UnderMount(got.Mount)
			if err != nil || !slices.Equal(again.Disks, got.Disks) || again.Mount != got.Mount {
				t.Errorf("by its mount: got %+v, %v; want %+v", again, err, got)
			}
			leaf := leaves(read(t, source(t, root)))
			for _, name := range got.Disks {
				if !slices.Contains(leaf, name) {
					t.Errorf("%s: got %s, want a leaf of a reading", test.path, name)
				}
			}
		})
	}
}

func TestUnderRefuses(t *testing.T) {
	root := fixture.Root(t, "disk_laptop")
	for path, want := range map[string]string{
		"":                "no path",
		"/nowhere/at/all": "does not exist",
		"/loopy/x":        "too many symbolic links",
		"/home/a\x00b":    "cannot be looked up",
	} {
		got, err := source(t, root).Under(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(got.Disks) > 0 {
			t.Errorf("%q: got %+v, %v; want %q", path, got, err, want)
		}
	}
}

func TestUnderWithoutSysfs(t *testing.T) {
	root := fixture.Root(t, "disk_server")
	if err := os.RemoveAll(filepath.Join(root, "sys")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/fast/x", "/pool/x"} {
		got, err := source(t, root).Under(path)
		if err == nil || got.Mount.Point == "" || len(got.Disks) > 0 {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
}

func TestUnderWithoutMounts(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/diskstats", nil)
	fixture.Write(t, root, "x", nil)
	if _, err := source(t, root).Under("/x"); err == nil || !strings.Contains(err.Error(), "list of mounts") {
		t.Errorf("error %v", err)
	}
	fixture.Write(t, root, "proc/self/mountinfo", []byte("garbage\n"))
	if _, err := source(t, root).Under("/x"); err == nil || !strings.Contains(err.Error(), "garbage") {
		t.Errorf("error %v", err)
	}
	fixture.Write(t, root, "proc/self/mountinfo", []byte("1 0 0:9 / /elsewhere rw - tmpfs t rw\n"))
	if _, err := source(t, root).Under("/x"); err == nil || !strings.Contains(err.Error(), "no mount") {
		t.Errorf("error %v", err)
	}
}

// Below /hostfs, "self" is the container's own process.
func TestContainerReadsMountsOfProcess1(t *testing.T) {
	root := fixture.Root(t, "disk_vm")
	fixture.Write(t, root, "proc/1/mountinfo", []byte("1 0 0:9 / / rw - nfs4 srv:/ rw\n"))
	got, err := source(t, root).Under("/home/x")
	if err != nil || got.Mount.Type != "nfs4" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Slaves may form a cycle or a chain that is too long.
func TestCyclicDevices(t *testing.T) {
	root := t.TempDir()
	machine(t, root, []string{"sda"})
	device := func(name string, on ...string) {
		for _, slave := range on {
			fixture.Write(t, root, "sys/class/block/"+name+"/slaves/"+slave, nil)
		}
	}
	device("dm-0", "dm-1", "sda")
	device("dm-1", "dm-0", "dm-1")
	for i := range 50 {
		device(fmt.Sprint("md", i), fmt.Sprint("md", i+1))
	}
	fixture.Write(t, root, "sys/class/block/loop0/loop/backing_file", []byte("/x\n"))
	fixture.Write(t, root, "sys/class/block/loop1/loop/backing_file", []byte("/gone/x (deleted)\n"))
	fixture.Write(t, root, "x", nil)
	fixture.Write(t, root, "sys/dev/block/y", nil)
	for number, name := range map[string]string{
		"252:0": "dm-0", "9:0": "md0", "7:0": "loop0", "7:1": "loop1", "8:9": "vanished",
	} {
		if err := os.Symlink("../../devices/"+name, filepath.Join(root, "sys/dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		major, minor   uint32
		disks, problem string
	}{
		{252, 0, "sda", ""},
		{9, 0, "", "are stacked"},
		{7, 0, "", ""}, // its file lies on itself
		{7, 1, "", "does not exist"},
		{8, 9, "", "disappeared"},
		{1, 2, "", "does not list"},
	}
	for _, test := range tests {
		m := sample.Mount{ID: 1, Point: "/", Type: "ext4", Major: test.major, Minor: test.minor}
		fixture.Write(t, root, "proc/self/mountinfo",
			fmt.Appendf(nil, "1 0 %d:%d / / rw - ext4 /dev/x rw\n", test.major, test.minor))
		got, err := source(t, root).UnderMount(m)
		if !slices.Equal(got.Disks, strings.Fields(test.disks)) || (err == nil) != (test.problem == "") ||
			err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%d:%d: got %+v, %v", test.major, test.minor, got, err)
		}
	}
}

func TestUnderThisMachine(t *testing.T) {
	s, err := New("")
	if err != nil {
		t.Skip("no disk counters:", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	got, err := s.Under(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got.Mount.Point == "" || len(got.Disks) == 0 && got.Mount.Type == "" {
		t.Errorf("got %+v, want a disk or a mount", got)
	}
	t.Logf("%s on %v through %v, mounted at %s", mount.Name(got.Mount.Type), got.Disks, got.Devices, got.Mount.Point)
}

func FuzzResolve(f *testing.F) {
	root, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	fixture.Write(f, root, "a/b/c", nil)
	for link, target := range map[string]string{
		"a/up": "..", "abs": "/a/b", "out": "../../../../etc", "self": "self", "a/chain": "../abs/./c",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			f.Fatal(err)
		}
	}
	for _, path := range []string{
		"/a/b/c", "/abs/c", "/out/passwd", "/self", "/a/chain", "/a/up/a/up/abs", "//a//./b/..", "", "\x00",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		resolved, err := resolve(root, path)
		if err != nil {
			return
		}
		expected, err := filepath.EvalSymlinks(filepath.Join(root, resolved))
		if err != nil || expected != filepath.Join(root, resolved) {
			t.Errorf("%q: got %q, want %q, %v", path, resolved, expected, err)
		}
	})
}

func BenchmarkUnder(b *testing.B) {
	s := source(b, "/")
	path := b.TempDir()
	for b.Loop() {
		if _, err := s.Under(path); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDevicesOf(t *testing.T) {
	root := fixture.Root(t, "disk_server")
	for path, want := range map[string]string{
		"/etc/fstab": "sde", "/data/base/x": "md0", "/scratch/x": "dm-0", "/pool/x": "sdg sdh", "/home/x": "",
	} {
		placement, err := source(t, root).Under(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := DevicesOf(root, placement.Mount); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
