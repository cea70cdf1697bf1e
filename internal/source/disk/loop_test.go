package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// loopMachine has a disk and three loop devices: on a FUSE file, on a file of the disk, without a file. ops is the
// number of operations of loop1 and loop2.
func loopMachine(t *testing.T, root string, ops int) {
	t.Helper()
	line := "%4d %7d %s %d 0 8 0 0 0 0 0 0 0 0\n"
	fixture.Write(t, root, "proc/diskstats", fmt.Appendf(nil, line+line+line+line,
		8, 0, "sda", 1, 7, 0, "loop0", 1, 7, 1, "loop1", ops, 7, 2, "loop2", ops))
	mounts := "1 0 8:0 / / rw - ext4 /dev/sda rw\n" +
		"2 1 0:50 / /served rw - fuse.slow slow rw\n" +
		"3 1 7:0 / /data rw - ext4 /dev/loop0 rw\n" +
		"4 1 7:1 / /image rw - ext4 /dev/loop1 rw\n" +
		"5 1 0:51 / /nfs rw - nfs4 server:/ rw\n" +
		"6 1 0:52 / /memory rw - tmpfs tmpfs rw\n"
	fixture.Write(t, root, "proc/self/mountinfo", []byte(mounts))
}

func loopFile(t *testing.T, root, name, file string) {
	t.Helper()
	fixture.Write(t, root, "sys/class/block/"+name+"/loop/backing_file", []byte(file+"\n"))
}

func TestLoopOnServedFile(t *testing.T) {
	root := t.TempDir()
	loopMachine(t, root, 0)
	for number, name := range map[string]string{"8:0": "sda", "7:0": "loop0", "7:1": "loop1", "7:2": "loop2"} {
		fixture.Write(t, root, "sys/class/block/"+name+"/size", nil)
		fixture.Write(t, root, "sys/dev/block/x", nil)
		if err := os.Symlink("../../class/block/"+name, filepath.Join(root, "sys/dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"data/x", "image/x", "disk.img"} { // none in /served: that is not read
		fixture.Write(t, root, file, nil)
	}
	loopFile(t, root, "loop0", "/served/device")
	loopFile(t, root, "loop1", "/disk.img")

	s := source(t, root)
	var stack []string
	leaf := func(want ...string) {
		t.Helper()
		disks := read(t, s)
		if got := leaves(disks); !slices.Equal(got, want) {
			t.Errorf("got leaves %v, want %v", got, want)
		}
		if got := layers(disks); !slices.Equal(got, stack) {
			t.Errorf("with leaves %v: got layers %q, want %q", want, got, stack)
		}
	}
	stack = []string{"loop1: sda"}
	leaf("sda", "loop0")
	if got, err := s.Under("/data/x"); err != nil || !slices.Equal(got.Disks, []string{"loop0"}) || len(got.Devices) > 0 {
		t.Errorf("served loop device: got %+v, %v; want the loop device", got, err)
	}
	if got, err := s.Under(
		"/image/x",
	); err != nil || !slices.Equal(got.Disks, []string{"sda"}) ||
		!slices.Equal(got.Devices, []string{"loop1"}) {
		t.Errorf("image on the disk: got %+v, %v; want the disk", got, err)
	}

	// An unused device and a used one get another file. Their next operation shows it.
	loopFile(t, root, "loop2", "/nfs/image (deleted)")
	leaf("sda", "loop0")
	loopMachine(t, root, 5)
	leaf("sda", "loop0", "loop2")
	loopMachine(t, root, 6)
	leaf("sda", "loop0", "loop2")
	loopMachine(t, root, 6) // idle
	leaf("sda", "loop0", "loop2")
	loopFile(t, root, "loop2", "/dev/loop1")
	stack = []string{"loop1: sda", "loop2: loop1"}
	loopMachine(t, root, 7)
	leaf("sda", "loop0")
	loopMachine(t, root, 7) // idle
	leaf("sda", "loop0")
	loopFile(t, root, "loop2", "/memory/image")
	loopFile(t, root, "loop1", "/served/device")
	stack = []string{"loop2"} // its file is in memory
	loopMachine(t, root, 8)
	leaf("sda", "loop0", "loop1")
}
