package identity

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const otherUser = 65534

// foreign calls listen as another user, who owns the kubelet's folder. Users belong to threads in Linux: this thread
// ends with its goroutine.
func foreign(t *testing.T, root string, listen func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	folder := filepath.Dir(filepath.Join(root, podResourcesSocket))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(folder), 0o777); err != nil { // so that no owner of a folder vouches for it
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, otherUser, otherUser, otherUser); err != 0 {
			t.Errorf("cannot become another user: %v", err)
			return
		}
		listen()
	}()
	<-ended
}
