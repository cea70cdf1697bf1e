package process

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// What this process has open: a model, another file, one that has no name any more, and a socket that listens.
func TestModelFiles(t *testing.T) {
	dir := t.TempDir()
	open := func(name, text string) *os.File {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return f
	}
	model, data, unlinked := open("a.safetensors", "0123456789"), open("train.dat", "01234"), open("b.gguf", "012")
	if err := os.Remove(unlinked.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Seek(4, 0); err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	d, self := NewDirect("/proc"), Key{PID: os.Getpid()}
	find := func(all Files, f *os.File) *File {
		i := slices.IndexFunc(all.List, func(x File) bool { return x.FD == int(f.Fd()) })
		if i < 0 {
			return nil
		}
		return &all.List[i]
	}
	all, err := d.ModelFiles(self, FilesWanted{Sockets: true, Others: true})
	if err != nil {
		t.Fatal(err)
	}
	got := find(all, model)
	if got == nil || got.Path != model.Name() || got.Size != 10 || got.Offset != 4 || !got.Write {
		t.Errorf("got the model %+v, want 10 bytes at offset 4, open for writing", got)
	}
	if got := find(all, data); got == nil || got.Size != 5 {
		t.Errorf("got the other file %+v, want one of 5 bytes", got)
	}
	if got := find(all, unlinked); got == nil || got.Path != unlinked.Name() {
		t.Errorf("got the file without a name %+v, want the path that it had", got)
	}
	if all.Listening < 1 {
		t.Errorf("got %d sockets that listen, want at least one", all.Listening)
	}
	if all, err = d.ModelFiles(self, FilesWanted{}); err != nil || find(all, model) == nil || find(all, data) != nil ||
		all.Listening != 0 {
		t.Errorf("of models alone: got %+v, %v, want no other file and no sockets", all, err)
	}
}

// A process that has ended has no files, and that is an error: they were not closed one by one.
func TestModelFilesOfTheDead(t *testing.T) {
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Skip("needs true:", err)
	}
	d := NewDirect("/proc")
	if all, err := d.ModelFiles(Key{PID: c.Process.Pid}, FilesWanted{Others: true}); err == nil {
		t.Errorf("got %+v, want an error", all)
	}
	folder := lister{want: FilesWanted{Others: true}, all: &Files{}}
	if folder.add("3"); !folder.missed {
		t.Error("a link that is not there: got no note of it, want one")
	}
}

func BenchmarkModelFiles(b *testing.B) {
	d, self := NewDirect("/proc"), Key{PID: os.Getpid()}
	for b.Loop() {
		if _, err := d.ModelFiles(self, FilesWanted{Others: true}); err != nil {
			b.Fatal(err)
		}
	}
}
