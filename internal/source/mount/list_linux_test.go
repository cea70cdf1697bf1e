package mount

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// points are the mount points of a list.
func points(t *testing.T, l *List) []string {
	t.Helper()
	entries, err := l.Entries()
	if err != nil {
		t.Fatalf("got the error %v, want none", err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Point)
	}
	return all
}

// The list is that of the kernel before and after each change, in a mount namespace of the test's own.
func TestListFollowsMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with its namespace
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Skipf("a mount namespace of its own needs CAP_SYS_ADMIN: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	l := NewList("/proc/thread-self/mountinfo")
	defer func() { _ = l.Close() }()
	if slices.Contains(points(t, l), folder) {
		t.Fatalf("got %s in the list, want it only after a mount", folder)
	}
	if l.file == nil {
		t.Fatal("got a list that is read again each time, want it kept")
	}
	if err := unix.Mount("none", folder, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	if got := points(t, l); !slices.Contains(got, folder) {
		t.Errorf("got %v, want %s after the mount", got, folder)
	}
	before := &l.entries[0]
	if points(t, l); before != &l.entries[0] {
		t.Error("got another reading without a change, want the kept one")
	}
	if err := unix.Unmount(folder, 0); err != nil {
		t.Fatal(err)
	}
	if got := points(t, l); slices.Contains(got, folder) {
		t.Errorf("got %v, want no %s after the unmount", got, folder)
	}
	if err := l.Close(); err != nil {
		t.Errorf("got the error %v, want none", err)
	}
	if got := points(t, l); len(got) == 0 {
		t.Error("got no mounts after Close, want them read again")
	}
}

// A copy of procfs reports no changes, so it is read each time.
func TestListOfACopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	l := NewList(path)
	defer func() { _ = l.Close() }()
	if _, err := l.Entries(); err == nil {
		t.Error("got no error without a file, want one")
	}
	for _, point := range []string{"/a", "/b"} {
		line := "36 35 98:0 / " + point + " rw - ext4 /dev/vda rw\n"
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := points(t, l); !slices.Equal(got, []string{point}) {
			t.Errorf("got %v, want %s alone", got, point)
		}
	}
}
