package statefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	old, fresh := filepath.Join(folder, ".state.json-1.new"), filepath.Join(folder, ".state.json-2.new")
	for _, left := range []string{old, fresh} {
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what a crash left long ago is still there")
	}
	if list, _ := filepath.Glob(filepath.Join(folder, ".*")); len(list) != 1 || list[0] != fresh {
		t.Errorf("%q are left", list)
	}
	if err := Replace(filepath.Join(folder, "none", "state"), nil); err == nil {
		t.Error("a file without a folder")
	}
}

func TestAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	names := map[string]bool{}
	for range 3 {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		name, err := Aside(path, "corrupt")
		if err != nil || names[name] || !strings.HasPrefix(name, path+".corrupt-") {
			t.Errorf("%s, %v", name, err)
		}
		names[name] = true
		if _, err := os.Stat(path); err == nil {
			t.Error("it has its name still")
		}
	}
	if _, err := Aside(path, "corrupt"); err == nil {
		t.Error("a file that is not there")
	}
}
