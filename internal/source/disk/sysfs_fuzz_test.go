package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// FuzzSysfs looks for the disks under a path with any texts in /sys. The search ends, and finds devices of /sys only.
func FuzzSysfs(f *testing.F) {
	f.Add("/data/image\n", "sda", "dm-0", "../../devices/pci/block/sda", "data", "0\n", "ATA", "1 2 3 4 5 6")
	f.Add("/images/a (deleted)\n", "loop0", "loop0", "../../loop0", "data\n", "1", "QEMU", "0 0 0 0 0")
	f.Add("", "cciss!c0d0", "..", "\x1b[2J", "\xff", "x", "\x00", "")
	f.Fuzz(func(t *testing.T, backing, slave, second, link, mapped, rotational, vendor, stat string) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		folders := []string{"loop0", "dm-0", "sda"}
		for _, name := range []string{slave, second} {
			if name != "" && name != "." && name != ".." && len(name) < 200 && !strings.ContainsAny(name, "/\x00") {
				folders = append(folders, name)
			}
		}
		block := "sys/class/block/"
		for i, name := range folders {
			fixture.Write(t, root, block+name+"/queue/rotational", []byte(rotational))
			fixture.Write(t, root, block+name+"/device/vendor", []byte(vendor))
			fixture.Write(t, root, block+name+"/stat", []byte(stat))
			if i != 2 { // each lies on those after it, and the last one on the first
				fixture.Write(t, root, block+name+"/slaves/"+folders[(i+1)%len(folders)], nil)
			}
		}
		fixture.Write(t, root, block+"loop0/loop/backing_file", []byte(backing))
		fixture.Write(t, root, block+"dm-0/dm/name", []byte(mapped))
		if os.MkdirAll(filepath.Join(root, "sys/dev/block"), 0o700) == nil && link != "" && !strings.Contains(link, "\x00") {
			_ = os.Symlink(link, filepath.Join(root, "sys/dev/block/8:1")) // fails for a target that is too long
		}
		fixture.Write(t, root, "proc/diskstats", []byte("7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n"))
		for _, mountinfo := range []string{"proc/self/mountinfo", "proc/1/mountinfo"} {
			fixture.Write(t, root, mountinfo, []byte("21 1 8:1 / / rw - ext4 /dev/mapper/data rw\n"+
				"22 21 7:0 / /data rw - ext4 /dev/loop0 rw\n23 21 0:30 / /images rw - btrfs /dev/sda rw\n"))
		}
		s, err := New(root)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		for _, path := range []string{"/", "/data", "/images"} {
			at, err := s.Under(path)
			if err != nil && errors.Is(err, os.ErrInvalid) {
				t.Errorf("%s: got %v, want no use of a closed file", path, err)
			}
			for _, name := range slices.Concat(at.Disks, at.Devices) {
				if name == "" || strings.ContainsAny(name, "\x00\n") && !slices.Contains(folders, name) {
					t.Errorf("%s: got %+v, want devices of /sys", path, at)
				}
			}
			_ = s.Kind(at)
		}
		for _, name := range folders {
			_, _, _ = s.KindOf(name), s.sys.whole(name), s.sys.silent(name)
		}
	})
}
