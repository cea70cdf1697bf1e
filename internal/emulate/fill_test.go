package emulate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a new ext4 of 64 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs ", tool)
		}
	}
	dir := realDir(t)
	image, point := filepath.Join(dir, "image"), filepath.Join(dir, "point")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(image, 64*mib), os.Mkdir(point, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", image).CombinedOutput(); err != nil {
		t.Skipf("needs a mkfs.ext4 that works: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, point).CombinedOutput(); err != nil {
		t.Skipf("needs loop devices: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", point).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return point
}

func TestOutOfSpace(t *testing.T) {
	dir := smallDisk(t)
	_, err := Prepare(t.Context(), dir, Options{Bytes: roundBytes})
	if err == nil || !strings.Contains(err.Error(), "free, and files of 32 MiB are only written where twice as much is") {
		t.Error("with less than twice as much free: ", err)
	}
	// Another process may use up the space while the files are written.
	f := &Files{dir: dir}
	_, err = fill(t.Context(), f.paths(), 3, time.Minute)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal("on a full disk: ", err)
	}
	if text := explain(err, dir).Error(); !strings.Contains(text, "no room left in "+dir) {
		t.Errorf("explain: got %q, want that there is no room left in %s", text, dir)
	}
	if _, err := fill(t.Context(), f.paths(), 1, time.Minute); !errors.Is(err, os.ErrExist) {
		t.Error("over files that are there: ", err)
	}
}

func TestExplain(t *testing.T) {
	for want, err := range map[string]error{
		"no room left in /d":          &os.PathError{Op: "write", Path: "/d/f", Err: syscall.EDQUOT},
		"cannot write files in /d":    &os.PathError{Op: "sync", Path: "/d/f", Err: syscall.EIO},
		context.Canceled.Error():      context.Canceled,
		"context deadline exceeded":   context.DeadlineExceeded,
		"pass --dir with a path on a": syscall.EROFS,
	} {
		if text := explain(err, "/d").Error(); !strings.Contains(text, want) {
			t.Errorf("%v: %q does not say %q", err, text, want)
		}
	}
}
