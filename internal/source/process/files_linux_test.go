package process

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
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
	if got == nil || got.Path != model.Name() || got.Size != 10 || got.Offset != 4 || !got.Write || got.Inode == 0 ||
		got.Device == 0 {
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

// Open files are listed again after their number has changed.
func TestOtherFilesAreOpen(t *testing.T) {
	program := exec.Command("sh", "-c", "echo; read line; exec 5</dev/null; read line")
	input, err1 := program.StdinPipe()
	output, err2 := program.StdoutPipe()
	if err := errors.Join(err1, err2, program.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil { // it has opened its libraries
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = program.Wait()
	})
	s := New("/")
	m, err := s.admit(program.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob("job", m.pid)
	j.members = []*member{m}
	if at, err := os.Stat(filepath.Join(m.dir, "fd")); err != nil || at.Size() == 0 {
		t.Skip("needs Linux 6.2, whose folders of open files have a size:", err)
	}
	if !m.hasOtherFiles() {
		t.Error("before the first list: got no other files, want that they are not known")
	}
	j.scanFiles(s, maxFDs, time.Minute)
	if m.hasOtherFiles() {
		t.Errorf("after a list of %d files: got others, want none", m.openFiles)
	}
	if _, err := input.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !m.hasOtherFiles(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after another file was opened: got the same %d files", m.openFiles)
		}
	}
	if j.scanFiles(s, 1, 2*time.Minute); !m.hasOtherFiles() {
		t.Error("after a list of one of its files: got no others, want that they are not known")
	}
}

// Open files of a job that no window needs are listed once a minute, and after 15 s if there may be others.
func TestRareFiles(t *testing.T) {
	ended := &member{proc: &proc{ended: true}}
	unknown := &member{proc: &proc{dir: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(unknown.dir, "fd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		m       *member
		sockets bool
		want    []int // s, of the lists
	}{
		{"as many files", ended, false, []int{60, 120}},
		{"sockets", ended, true, []int{15, 30, 45, 60, 75, 90, 105, 120}},
		{"an unknown number", unknown, false, []int{15, 30, 45, 60, 75, 90, 105, 120}},
	} {
		j := &job{rarely: true, members: []*member{c.m}}
		j.mounts.sockets = c.sockets
		var got []int
		for s := 1; s <= 120; s++ {
			if now := time.Duration(s) * time.Second; j.scansFiles(true, now) {
				got, j.mounts.at = append(got, s), now
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got lists after %v s, want %v", c.name, got, c.want)
		}
	}
}
