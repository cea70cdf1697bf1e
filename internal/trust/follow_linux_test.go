package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const otherUser = 65534 // has no rights

func TestFollow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	folder := t.TempDir()
	victim := filepath.Join(folder, "victim")
	if err := errors.Join(os.Mkdir(victim, 0o700), os.WriteFile(victim+"/passwd", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		mode          os.FileMode // of the folder
		owner, linker int
		ok            bool
	}{
		"link of another user, sticky":       {0o777 | os.ModeSticky, 0, otherUser, false},
		"link of another user, open":         {0o777, 0, otherUser, false},
		"link of another user, group":        {0o775, 0, otherUser, false},
		"link of another user, closed":       {0o755, 0, otherUser, true}, // root has made it for them
		"own link, sticky":                   {0o777 | os.ModeSticky, 0, 0, true},
		"link of the folder's owner, sticky": {0o777 | os.ModeSticky, otherUser, otherUser, true},
	} {
		in := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
		link, file, deep := in+"/link", in+"/file", in+"/folder"
		if err := errors.Join(os.Mkdir(in, 0o755), os.Symlink("../victim/passwd", link), os.WriteFile(file, nil, 0o600),
			os.Symlink(victim, deep), os.Lchown(link, test.linker, test.linker), os.Lchown(deep, test.linker, test.linker),
			os.Chown(file, test.linker, test.linker), os.Chown(in, test.owner, test.owner),
			os.Chmod(in, test.mode)); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{link: victim + "/passwd", file: file, deep + "/new": victim + "/new",
			in + "/new": in + "/new"} {
			ok := test.ok || path == in+"/new"
			got, err := Follow(path)
			if (err == nil) != ok || ok && got != want {
				t.Errorf("%s, %s: got %q, %v; want %q, accepted %v", name, filepath.Base(path), got, err, want, ok)
			}
		}
	}
}

func TestFollowResolves(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	if err := errors.Join(os.MkdirAll("a/b", 0o700), os.Symlink("a/b", "ab"), os.Symlink("loop", "loop"),
		os.Symlink("missing", "dangling"), os.Symlink("../..", "a/b/up")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"x": folder + "/x", "ab/x": folder + "/a/b/x", "ab/../x": folder + "/a/x", "./ab//up/x": folder + "/x",
		"dangling": folder + "/missing", "none/x": folder + "/none/x", folder: folder, "loop": "",
	} {
		if got, err := Follow(path); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
}
