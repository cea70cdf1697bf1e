package modelfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func put(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// As Hugging Face's cache: the snapshot's files are links to blobs without extensions.
func TestFindFollowsLinks(t *testing.T) {
	hub := t.TempDir()
	put(t, filepath.Join(hub, "blobs/aa"), 3<<20)
	put(t, filepath.Join(hub, "blobs/bb"), 2<<20)
	put(t, filepath.Join(hub, "blobs/cc"), 4<<20)
	snapshot := filepath.Join(hub, "snapshots/1")
	link(t, "../../blobs/aa", filepath.Join(snapshot, "model-00001-of-00002.safetensors"))
	link(t, "../../blobs/bb", filepath.Join(snapshot, "model-00002-of-00002.safetensors"))
	link(t, "../../blobs/bb", filepath.Join(snapshot, "same.safetensors"))
	link(t, "../../blobs/cc", filepath.Join(snapshot, "tokenizer.json"))
	link(t, "../../blobs/gone", filepath.Join(snapshot, "gone.safetensors"))
	link(t, "../../blobs", filepath.Join(snapshot, "folder.safetensors"))
	put(t, filepath.Join(snapshot, "small.bin"), minSize-1)
	put(t, filepath.Join(snapshot, "1/MODEL.PLAN"), minSize)
	latest := filepath.Join(hub, "latest")
	link(t, snapshot, latest)
	for _, folder := range []string{snapshot, latest} {
		found, err := Find(folder)
		if err != nil {
			t.Fatal(err)
		}
		want := []File{
			{filepath.Join(snapshot, "1/MODEL.PLAN"), minSize},
			{filepath.Join(snapshot, "model-00001-of-00002.safetensors"), 3 << 20},
			{filepath.Join(snapshot, "model-00002-of-00002.safetensors"), 2 << 20},
		}
		if len(found) != len(want) {
			t.Fatalf("%s: got %v, want %v", folder, found, want)
		}
		for i := range want {
			if found[i] != want[i] {
				t.Errorf("%s: got %v, want %v", folder, found[i], want[i])
			}
		}
	}
}

func TestFindOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights") // any name
	put(t, path, 7)
	if found, err := Find(path); err != nil || len(found) != 1 || found[0] != (File{path, 7}) {
		t.Errorf("got %v, %v, want the file", found, err)
	}
}

func TestIsBlob(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for name, want := range map[string]bool{
		"/hub/models--a--b/blobs/" + hash:   true,
		"/models/blobs/sha256-" + hash:      true,
		"/models/blobs/sha256-" + hash[1:]:  false,
		"/models/blobs/" + hash:             false,
		"/hub/datasets--a--b/blobs/" + hash: false,
		"/models/other/sha256-" + hash:      false,
	} {
		if got := IsBlob(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestFindNothing(t *testing.T) {
	empty := t.TempDir()
	put(t, filepath.Join(empty, "data.csv"), 2<<20)
	for path, want := range map[string]string{
		empty:                       "there is no model below",
		filepath.Join(empty, "nix"): "no such file",
		"/dev/null":                 "neither a file nor a folder",
	} {
		if found, err := Find(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", path, found, err, want)
		}
	}
}
