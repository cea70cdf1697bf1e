package slowdisk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// parentVariable makes this test program open a disk of that kind, print its folder and wait to be killed.
const parentVariable = "STALLSPAN_STORAGE_TEST_PARENT"

func TestMain(m *testing.M) {
	if Serve() {
		return
	}
	if kind := os.Getenv(parentVariable); kind != "" {
		d, err := Open(context.Background(), Kind(kind), Options{Size: minSize})
		if err == nil {
			err = d.Slow()
		}
		fmt.Println(d.base, err)
		time.Sleep(time.Hour)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each server takes a second to end
	goleak.VerifyTestMain(m)
}

// need skips a test that cannot run here.
func need(t testing.TB, kind Kind) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if kind == Memory || kind == Local {
		return
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs FUSE: ", err)
	}
	if kind == Network {
		return
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("needs loop devices: ", err)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("needs mkfs.ext4 of e2fsprogs: ", err)
	}
	if kind == Throttled {
		if _, err := ownGroup(); err != nil {
			t.Skip(err)
		}
	}
}

// opened returns a disk that is closed at the end of the test, and checks that nothing of it is left.
func opened(t testing.TB, kind Kind, o Options) *Disk {
	t.Helper()
	need(t, kind)
	if o.Size == 0 {
		o.Size = 128 * mib
	}
	d, err := Open(t.Context(), kind, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left := remains(d.base); left != "" {
			t.Error("left after Close: ", left)
		}
	})
	return d
}

// remains lists what is left of a disk: mounts, loop devices, processes, folders; "" for nothing.
func remains(base string) string {
	var left []string
	mounts, err := mountsBelow(base)
	if err != nil {
		return err.Error()
	}
	left = append(left, mounts...)
	backings, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range backings {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), base) {
			left = append(left, file)
		}
	}
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), base) {
			left = append(left, "process "+filepath.Base(filepath.Dir(file)))
		}
	}
	if _, err := os.Stat(base); err == nil {
		left = append(left, base)
	}
	return strings.Join(left, ", ")
}
