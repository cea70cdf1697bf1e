package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	old, recent := filepath.Join(folder, ".state.json-1.new"), filepath.Join(folder, ".state.json-2.new")
	write(t, old, "")
	write(t, recent, "")
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		wantText(t, path, text)
	}
	if left := wantFiles(t, filepath.Join(folder, ".*"), 1); left[0] != recent {
		t.Errorf("got %q left, want %q", left, recent)
	}
	if err := Replace(filepath.Join(folder, "none", "state"), nil); err == nil {
		t.Error("a missing folder: got no error")
	}
}

func TestReplaceKeepsLinkAndMode(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "state.json"), filepath.Join(folder, "link")
	write(t, path, "one")
	if err := errors.Join(os.Chmod(path, 0o640), os.Symlink(path, link), Replace(link, []byte("two"))); err != nil {
		t.Fatal(err)
	}
	wantText(t, path, "two")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("got mode %v, %v; want 0640", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("got %v, %v; want a link", info.Mode(), err)
	}
}

// Of the files that could not be used, the newest eight are kept, and no other file is removed.
func TestQuarantinePrunes(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	others := []string{path, path + ".mine-20200101T000000Z.txt", path + "2.corrupt-20200101T000000Z",
		path + ".corrupt-yesterday", filepath.Join(folder, "state.corrupt-20200101T000000Z")}
	for _, other := range others {
		write(t, other, "other")
	}
	for second := range 10 {
		write(t, fmt.Sprintf("%s.newer-2-20200101T0000%02dZ", path, second), "x")
	}
	name, err := Quarantine(path, "corrupt")
	if err != nil {
		t.Fatal(err)
	}
	got := wantFiles(t, filepath.Join(folder, "*"), maxRenamed+len(others)-1)
	for _, kept := range append(others[1:], name, path+".newer-2-20200101T000009Z", path+".newer-2-20200101T000003Z") {
		if !slices.Contains(got, kept) {
			t.Errorf("got %q, want %s among them", got, kept)
		}
	}
}

func TestQuarantine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	names := map[string]bool{}
	for range 3 {
		write(t, path, "x")
		name, err := Quarantine(path, "corrupt")
		if err != nil || names[name] || !strings.HasPrefix(name, path+".corrupt-") {
			t.Errorf("got %s, %v; want a new name", name, err)
		}
		names[name] = true
		if _, err := os.Stat(path); err == nil {
			t.Error("the old name still exists")
		}
	}
	if _, err := Quarantine(path, "corrupt"); err == nil {
		t.Error("a missing file: got no error")
	}
}

// A command of root leaves files that the folder's user can read and write.
func TestNewFileOfRoot(t *testing.T) {
	const user = 1234
	folder := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	path := filepath.Join(folder, "state.json")
	if err := errors.Join(os.Chown(folder, user, user), Replace(path, []byte("one"))); err != nil {
		t.Fatal(err)
	}
	f, _ := open(filepath.Join(folder, "counts.json"))
	if err := f.add("a", 1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, f.Path, filepath.Join(folder, ".counts.json.lock")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != user || st.Gid != user || info.Mode() != 0o600 {
			t.Errorf("%s: got user %d, mode %v; want user %d, 0600", path, st.Uid, info.Mode(), user)
		}
	}
}
