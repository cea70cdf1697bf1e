package api

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// A client asks the first server that answers. Without one it keeps its own path, or that of a server that is closed to
// its user, so that it can say so.
func TestFirstServed(t *testing.T) {
	folder := t.TempDir()
	serve := func(path string) (end func()) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return func() {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			_ = l.Close()
		}
	}
	own, system := filepath.Join(folder, "own"), filepath.Join(folder, "system")
	check := func(what, want string) {
		t.Helper()
		if got := firstServed([]string{own, system}); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	check("no server", own)
	end := serve(system)
	check("a server of the machine", system)
	endOwn := serve(own)
	check("two servers", own)
	endOwn()
	check("an own server that has ended", system)
	end()
	check("both have ended", own)

	t.Run("a closed folder", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("nothing is closed to root: run as another user")
		}
		closed := filepath.Join(folder, "closed")
		if err := os.Mkdir(closed, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := firstServed([]string{own, filepath.Join(closed, "s")}), filepath.Join(closed, "s"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
