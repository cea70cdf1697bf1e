package trust

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// madeIn makes a folder with a mode and an owner.
func madeIn(t *testing.T, in, name string, mode os.FileMode, owner int) string {
	t.Helper()
	path := filepath.Join(in, name)
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, owner, owner), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server is trusted in a folder that only root or the client can have given to its user.
func TestServer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	const service, own, other = 995, 1000, otherUser
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for dir := base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) { // t.TempDir is for its owner only
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	given := madeIn(t, base, "given", 0o750, service)
	sticky := madeIn(t, base, "sticky", 0o777|os.ModeSticky, 0)
	below := madeIn(t, sticky, "of-root", 0o755, 0)
	ofOwn := madeIn(t, sticky, "of-the-client", 0o755, own)
	ofOther := madeIn(t, sticky, "of-another", 0o755, other)
	open := madeIn(t, base, "open", 0o777, 0)
	group := madeIn(t, base, "group", 0o775, 0)
	link, planted := filepath.Join(base, "link"), filepath.Join(sticky, "link")
	err = errors.Join(os.Symlink("given", link), os.Symlink(given, planted), os.Lchown(planted, other, other))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		folder string
		server uint32
		want   bool
	}{
		{"root", sticky, 0, true},
		{"the client's user", sticky, own, true},
		{"another user", "/tmp", other, false},
		{"the owner of a folder in root's", given, service, true},
		{"another user in it", given, other, false},
		{"the owner, through root's link", link, service, true},
		{"the owner, through a planted link", planted, service, false},
		{"below a folder of root in a sticky one", madeIn(t, below, "s", 0o755, service), service, true},
		{"below a folder of the client in a sticky one", madeIn(t, ofOwn, "s", 0o755, service), service, true},
		{"below a folder of another user in a sticky one", madeIn(t, ofOther, "s", 0o755, service), service, false},
		{"made by its owner in a sticky folder", madeIn(t, sticky, "s", 0o755, other), other, false},
		{"in a folder that all may write", madeIn(t, open, "s", 0o755, service), service, false},
		{"in a folder that a group may write", madeIn(t, group, "s", 0o755, service), service, false},
		{"that others may write", madeIn(t, base, "loose", 0o757, service), service, false},
		{"no folder", "/nowhere/at/all", service, false},
		{"no path", "", service, false},
	} {
		if err := server(filepath.Join(c.folder, "x"), c.server, own); (err == nil) != c.want {
			t.Errorf("%s: got %v, want trust %v", c.name, err, c.want)
		}
	}
}

func TestPeerOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	want := Peer{os.Getpid(), uint32(os.Geteuid()), uint32(os.Getegid())}
	if got, err := PeerOf(c); got != want || err != nil {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := Dial(t.Context(), path+"-none"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want that there is no such file", err)
	}
}
