package bench

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// slow makes a folder with a file on a device that is really slow.
func slow(t *testing.T, kind slowdisk.Kind, delay time.Duration) (*slowdisk.Disk, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("reads a slow device for seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for a slow device")
	}
	for _, need := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("needs FUSE and loop devices: ", err)
		}
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("needs mkfs.ext4 of e2fsprogs: ", err)
	}
	d, err := slowdisk.Open(t.Context(), kind, slowdisk.Options{Size: 256 << 20, Delay: delay, ReadAhead: large})
	if err != nil {
		t.Skip("needs a slow device: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	path := written(t, d.Dir, minSize)
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	return d, path
}

// A device that takes 10 ms for a read, one at a time, does at most 100 reads per second. A deeper queue only adds to
// their await.
func TestSlowDevice(t *testing.T) {
	d, path := slow(t, slowdisk.Spinning, 10*time.Millisecond)
	r := measured(t, Options{Path: path, Step: 600 * time.Millisecond})
	whole(t, r)
	one, most := r.Random[0], r.Random[len(r.Random)-1]
	if one.IOPS > 110 || one.AwaitP50 < 0.009 || most.IOPS > 110 || most.IOPS < one.IOPS/3 ||
		most.AwaitP50 < 8*one.AwaitP50 {
		t.Errorf("alone %+v, 32 at once %+v", one, most)
	}
	if !r.OfDisk || r.Device != d.Device {
		t.Errorf("it is %s: %+v", d.Device, r)
	}
}

// A device that does not answer ends the benchmark in time.
func TestHanging(t *testing.T) {
	d, path := slow(t, slowdisk.Parallel, 6*time.Second)
	began := time.Now()
	r, err := Run(t.Context(), Options{Path: path, Step: brief})
	if err == nil || r == nil || !strings.Contains(err.Error(), "has not answered") || errors.Is(err, errHangs) {
		t.Errorf("%+v, %v after %v", r, err, time.Since(began))
	}
	if err := d.Fast(); err != nil {
		t.Error(err)
	}
	for range 100 { // until the reads that were left behind have come back
		if stacks := make([]byte, 1<<20); !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]),
			"internal/bench.(*step)") {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Error("reads do not come back from a device that is fast again")
}
