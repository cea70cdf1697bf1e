package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attached makes a loop device on a file. With direct it bypasses the page cache.
func attached(t *testing.T, path string, direct bool) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a loop device")
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs loop devices: ", err)
	}
	defer func() { _ = control.Close() }()
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backing.Close() }()
	setting := unix.LoopConfig{Fd: uint32(backing.Fd())}
	setting.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_READ_ONLY
	if direct {
		setting.Info.Flags |= unix.LO_FLAGS_DIRECT_IO
	}
	for range 20 { // another process may be faster
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Skip("needs a free loop device: ", err)
		}
		device, err := os.Open(filepath.Join("/dev", "loop"+strconv.Itoa(number)))
		if err != nil {
			t.Skip("needs a loop device that may be opened: ", err)
		}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &setting); err == nil {
			t.Cleanup(func() { _ = device.Close() }) // and it detaches itself
			return device.Name()
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			t.Skip("needs a loop device: ", err)
		}
	}
	t.Skip("needs a free loop device")
	return ""
}

func TestDevice(t *testing.T) {
	device := attached(t, written(t, t.TempDir(), minSize), true)
	r := measured(t, Options{Device: filepath.Base(device)})
	whole(t, r)
	if r.Path != device || r.Size != minSize || !r.Direct {
		t.Errorf("got %+v, want direct reads of the whole device", r)
	}
}

// A loop device without direct I/O reads from the page cache of its file, so its numbers are not the disk's.
func TestCacheAboveTheDisk(t *testing.T) {
	path := written(t, t.TempDir(), minSize) // which is in the page cache
	r := measured(t, Options{Device: attached(t, path, false)})
	whole(t, r)
	if r.Device == "" {
		t.Skip("the temporary files are on no disk of this machine, or several")
	}
	if r.OfDisk || !strings.Contains(strings.Join(r.Notes, " "), "from a cache above it") {
		t.Errorf("got %+v, want a note on the cache above the disk", r)
	}
}

// A device that fails in the middle: the results so far are kept, and the error contains the offset.
func TestShrinking(t *testing.T) {
	path := written(t, t.TempDir(), minSize)
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(200 * time.Millisecond)
		_ = os.Truncate(path, 0)
	}()
	r, err := Run(t.Context(), Options{Path: path, Step: time.Second})
	<-done
	if err == nil || r == nil || !strings.Contains(err.Error(), "failed") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %+v, %v, want a partial result and an error of one line", r, err)
	}
}
