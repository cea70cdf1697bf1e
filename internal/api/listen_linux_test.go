package api

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSocketIsNeverOpenToOthers binds with a umask of 0 and checks the file before its mode is set.
func TestSocketIsNeverOpenToOthers(t *testing.T) {
	const variable = "STALLSPAN_TEST_BIND"
	if path := os.Getenv(variable); path != "" {
		syscall.Umask(0)
		config := net.ListenConfig{Control: bornPrivate}
		l, err := config.Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"="+filepath.Join(folder(t), "s"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("got %v, want exit code 0\n%s", err, out)
	}
}
