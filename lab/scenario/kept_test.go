package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files of an earlier run are removed; all others stay, whatever the folder.
func TestForgetAll(t *testing.T) {
	folder := t.TempDir()
	kept := []string{"idle-100.jsonl.gz", "idle-100.json", "phase_change-0.json"}
	others := []string{
		"idle-100.txt", "idle-1e3.json", "idle-007.json", "idle-.json", "idle.json", "idle--1.json", "precious-100.json",
		"machine.jsonl.gz", "results.json", "-1.json",
	}
	for _, name := range slices.Concat(kept, others) {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(folder, "idle-1.json") // a folder
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, "idle-2.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ForgetAll(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range append(others, "idle-1.json", "idle-1.json/idle-2.json") {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("%s is gone", name)
		}
	}
	if err := ForgetAll(filepath.Join(folder, "none")); err != nil {
		t.Errorf("a folder that there is not yet: %v", err)
	}
}

// The files of each variant can be found by their names.
func TestKeptNames(t *testing.T) {
	all(t, func(t *testing.T, _ *Case, v Variant) {
		for _, end := range [...]string{recordingEnd, resultsEnd} {
			if name := filepath.Base(keptAt("", &v, end)); !isKept(name) {
				t.Errorf("%s is not known", name)
			}
		}
	})
}
