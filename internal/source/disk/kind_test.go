package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestKind(t *testing.T) {
	root := t.TempDir()
	for name, files := range map[string]map[string]string{
		"sda": {"queue/rotational": "1\n", "device/vendor": "ATA     \n"}, "sdb": {"queue/rotational": "0\n", "device/vendor": "ATA     \n"},
		"sdc": {"queue/rotational": "1\n", "device/vendor": "QEMU    \n"}, "vda": {"queue/rotational": "1\n"}, "mmcblk0": {"queue/rotational": "0\n"},
	} {
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
	s := &Source{root: root, sys: sysfs{root}}
	for want, p := range map[string]Placement{
		"rotational": {Disks: []string{"sda"}}, "ssd": {Disks: []string{"sdb", "mmcblk0"}}, "virtual": {Disks: []string{"sdc", "vda"}},
		"nvme+ssd": {Disks: []string{"sdb", "nvme0n1"}, Devices: []string{"dm-0"}}, "unknown": {Disks: []string{"sdz"}},
		"loop":   {Disks: []string{"sda"}, Devices: []string{"loop3", "sda1"}},
		"memory": {Mount: sample.Mount{Type: "tmpfs"}}, "nfs4": {Mount: sample.Mount{Type: "nfs4"}},
	} {
		if got := s.Kind(p); got != want {
			t.Errorf("%+v: got %s, want %s", p, got, want)
		}
	}
	for _, p := range []Placement{{}, {Mount: sample.Mount{Type: "ext4"}, Devices: []string{"dm-0"}}} {
		if got := s.Kind(p); got != NoKind {
			t.Errorf("%+v: got %s, want none", p, got)
		}
	}
}

// Paths of one machine have different kinds.
func TestKindOfPaths(t *testing.T) {
	for path, want := range map[string]string{"/": NVMe, "/dev/shm": Memory, "/snap/core22/1380": Loop} {
		s := source(t, fixture.Root(t, "disk_laptop"))
		p, err := s.Under(path)
		if got := s.Kind(p); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", path, got, err, want)
		}
	}
}
