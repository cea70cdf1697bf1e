package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const semconvFolder = "../../semconv"

// What is committed must be what the registry gives, letter for letter.
func TestOutputsAreUpToDate(t *testing.T) {
	r, err := load(os.DirFS(filepath.Join(semconvFolder, "registry")))
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range outputs {
		want, err := out.write(r)
		if err != nil {
			t.Fatalf("write %s: %v", out.path, err)
		}
		got, err := os.ReadFile(filepath.Join(semconvFolder, out.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the registry says: run go generate ./semconv", out.path)
		}
	}
}

func TestGenerate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "semconv")
	if err := os.CopyFS(filepath.Join(root, "registry"), os.DirFS(filepath.Join(semconvFolder, "registry"))); err != nil {
		t.Fatal(err)
	}
	if err := generate(root); err == nil {
		t.Error("no folders to write to, and no error")
	}
	for _, folder := range []string{"../docs", "../receiver", "../test/signals"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := generate(root); err != nil {
		t.Fatal(err)
	}
	for _, out := range outputs {
		got, err := os.ReadFile(filepath.Join(root, out.path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(semconvFolder, out.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s comes out differently elsewhere", out.path)
		}
	}
}

func TestGenerateWithoutRegistry(t *testing.T) {
	if err := generate(t.TempDir()); err == nil {
		t.Error("an empty folder passed for a registry")
	}
}
