package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// actAs makes a copy of the test program another user of the file in STALLSPAN_TEST_FILE.
const actAs = "STALLSPAN_TEST_ACT_AS"

func TestMain(m *testing.M) {
	path := os.Getenv("STALLSPAN_TEST_FILE")
	file := counts{File[map[string]int]{Path: path, Name: "counts", Version: 3, Wait: time.Minute}}
	switch os.Getenv(actAs) {
	case "adder": // adds 10, one at a time
		for range 10 {
			if err := file.add("n", 1); err != nil {
				fmt.Println(err)
			}
		}
	case "writer": // writes until it is killed
		for i := 0; ; i++ {
			if err := file.add(fmt.Sprint(i%500), 1); err != nil {
				fmt.Println(err)
			}
		}
	case "once": // adds 1, and renames a damaged file
		file.Owned, file.Report = true, func(error) {}
		if err := file.add("n", 1); err != nil {
			fmt.Println(err)
		}
	case "large": // writes more than its limit of a file's size allows
		if err := file.add(strings.Repeat("x", 1<<20), 1); err != nil {
			fmt.Println(err)
		}
	default:
		os.Exit(m.Run())
	}
}

type counts struct{ File[map[string]int] }

func (c *counts) add(key string, n int) error {
	_, err := c.Update(func(all *map[string]int) error {
		if *all == nil {
			*all = map[string]int{}
		}
		(*all)[key] += n
		return nil
	})
	return err
}

// open returns a file that quarantines damaged files, and the lines that it reports.
func open(path string) (*counts, *[]string) {
	lines := new([]string)
	return &counts{File[map[string]int]{
		Path: path, Name: "counts", Version: 3, MaxSize: 1 << 20, Owned: true, Wait: time.Minute,
		Report: func(err error) { *lines = append(*lines, err.Error()) },
		Check: func(all map[string]int) error {
			for key, n := range all {
				if n < 0 {
					return fmt.Errorf("%q is negative", key)
				}
			}
			return nil
		},
	}}, lines
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: got %.80q, %v; want %.80q", path, got, err, want)
	}
}

func wantFiles(t *testing.T, pattern string, want int) []string {
	t.Helper()
	got, err := filepath.Glob(pattern)
	if err != nil || len(got) != want {
		t.Errorf("%s: got %q, %v; want %d files", pattern, got, err, want)
	}
	return got
}

func TestLoadAndUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new/folder/counts.json")
	f, lines := open(path)
	if all, err := f.Load(); err != nil || all != nil {
		t.Errorf("no file: got %v, %v; want nothing", all, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("Load created a folder")
	}
	for range 3 {
		if err := f.add("a", 2); err != nil {
			t.Fatal(err)
		}
	}
	wantText(t, path, `{"version":3,"checksum":"b59a1c2f","counts":{"a":6}}`+"\n")
	again, _ := open(path)
	if all, err := again.Load(); err != nil || all["a"] != 6 {
		t.Errorf("got %v, %v; want a = 6", all, err)
	}
	for of, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(of); err != nil || info.Mode() != want {
			t.Errorf("%s: got mode %v, %v; want %v", of, info.Mode(), err, want)
		}
	}
	refused := errors.New("refused")
	if _, err := f.Update(func(all *map[string]int) error { (*all)["a"] = 9; return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
	if all, err := again.Load(); err != nil || all["a"] != 6 {
		t.Errorf("after a refused change: got %v, %v; want a = 6", all, err)
	}
	if len(*lines) > 0 {
		t.Errorf("got reports %q, want none", *lines)
	}
}

func TestChanged(t *testing.T) {
	f, _ := open(filepath.Join(t.TempDir(), "counts.json"))
	other, _ := open(f.Path)
	want := func(when string, want bool) {
		t.Helper()
		if got := f.Changed(); got != want {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	want("no file", false)
	if err := other.add("a", 1); err != nil {
		t.Fatal(err)
	}
	want("another process wrote", true)
	if _, err := f.Load(); err != nil {
		t.Fatal(err)
	}
	want("read", false)
	if err := f.add("a", 1); err != nil {
		t.Fatal(err)
	}
	want("own write", false)
}

func TestUnusableFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, kind, want string }{
		"cut":          {`{"version":3,"counts":{"a":`, "corrupt", "it is cut or damaged: unexpected end of JSON input"},
		"garbage":      {"\x00\x00\x00", "corrupt", "it is cut or damaged"},
		"other JSON":   {`[1]`, "corrupt", "it is cut or damaged"},
		"other object": {`{"name":"x"}`, "corrupt", `its version is ""`},
		"version 0":    {`{"version":0,"counts":{}}`, "corrupt", `its version is "0"`},
		"newer":        {`{"version":7,"other":1}`, "newer-7", "its version is 7, and this program reads up to 3"},
		"no value":     {`{"version":3}`, "corrupt", `it holds no "counts"`},
		"checksum":     {`{"version":3,"checksum":"00000000","counts":{"a":1}}`, "corrupt", "its checksum does not match"},
		"wrong type":   {`{"version":3,"counts":{"a":"b"}}`, "corrupt", `"counts" cannot be read: json: cannot unmarshal`},
		"refused":      {`{"version":3,"counts":{"a":-1}}`, "corrupt", `"a" is negative`},
		"too large": {`{"version":3,"counts":{}}` + strings.Repeat(" ", 1<<20), "corrupt",
			"it has more than 1048576 bytes"},
		"text after end": {`{"version":3,"counts":{}} x`, "corrupt", "it is cut or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "counts.json")
			write(t, path, c.text)
			reader, _ := open(path)
			reader.Report = nil
			all, err := reader.Load()
			if !errors.As(err, new(*Damage)) || !strings.Contains(err.Error(), c.want) || len(all) > 0 {
				t.Errorf("got %v, %v; want nothing, %s", all, err, c.want)
			}
			if err := reader.add("a", 1); !errors.As(err, new(*Damage)) {
				t.Errorf("without Report: got %v, want *Damage", err)
			}
			wantText(t, path, c.text)

			f, lines := open(path)
			if all, err := f.Load(); err != nil || len(all) > 0 {
				t.Errorf("got %v, %v; want nothing", all, err)
			}
			wantText(t, wantFiles(t, path+"."+c.kind+"-*", 1)[0], c.text)
			if len(*lines) != 1 || !strings.Contains((*lines)[0], c.want) || strings.Contains((*lines)[0], "\n") {
				t.Errorf("got %q, want one line with %q", *lines, c.want)
			}
			write(t, path, c.text)
			if err := f.add("b", 1); err != nil {
				t.Error(err)
			}
			if all, err := f.Load(); err != nil || !maps.Equal(all, map[string]int{"b": 1}) {
				t.Errorf("got %v, %v; want b = 1", all, err)
			}
			wantFiles(t, path+"."+c.kind+"-*", 2)
		})
	}
}

// A flipped bit leaves the value as it was, or quarantines the file.
func TestFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.json")
	f, _ := open(path)
	for i := range 50 {
		if err := f.add(fmt.Sprintf("key %d", i), i); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := f.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	random, damaged := rand.New(rand.NewPCG(3, 4)), 0
	for range 2000 {
		changed := bytes.Clone(text)
		at := random.IntN(len(changed))
		changed[at] ^= byte(1 << random.IntN(8))
		all, err := f.parse(changed)
		switch {
		case err != nil:
			damaged++
		case at > len(`{"version":3,"checksum"`) && !maps.Equal(all, whole):
			t.Fatalf("byte %d: %s", at, cmp.Diff(whole, all))
		}
	}
	if damaged < 1800 {
		t.Errorf("got %d of 2000 files refused, want most", damaged)
	}
}

func TestForeign(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "train.py")
	f, lines := open(path)
	f.Owned = false
	for _, text := range []string{"import torch\n", `{"name":"x"}`, "\x00\x00"} {
		write(t, path, text)
		if _, err := f.Load(); !errors.Is(err, ErrForeign) {
			t.Errorf("Load: got %v, want %v", err, ErrForeign)
		}
		if err := f.add("a", 1); !errors.Is(err, ErrForeign) {
			t.Errorf("Update: got %v, want %v", err, ErrForeign)
		}
		wantText(t, path, text)
	}
	write(t, path, "{\n \"version\" : 3, \"counts\": {\"a\"")
	if _, err := f.Load(); err != nil || len(*lines) != 1 {
		t.Errorf("a cut file: got %v, reports %q; want one report", err, *lines)
	}
	write(t, path, "")
	if err := f.add("a", 1); err != nil {
		t.Errorf("an empty file: got %v, want no error", err)
	}
	f.Path = folder
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: got %v, want an error", err)
	}
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Path = pipe
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: got %v, want an error", err)
	}
}

// other starts a copy of this program that uses the file.
func other(role, path string, command ...string) *exec.Cmd {
	command = append(command, os.Args[0])
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), actAs+"="+role, "STALLSPAN_TEST_FILE="+path, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new/counts.json")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if out, err := other("adder", path).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("got %v, %s; want no output", err, out)
			}
		})
	}
	all.Wait()
	f, _ := open(path)
	if got, err := f.Load(); err != nil || got["n"] != 200 {
		t.Errorf("got %v, %v; want n = 200", got, err)
	}
	wantFiles(t, filepath.Join(filepath.Dir(path), "*"), 2) // with the lock file
}

func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.json")
	f, lines := open(path)
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		cmd := other("writer", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+7*i%90) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := f.Load(); err != nil || len(*lines) > 0 {
			t.Fatalf("got %v, reports %q; want a whole file", err, *lines)
		}
	}
	if err := f.add("n", 1); err != nil {
		t.Error(err)
	}
}

// A write that fails leaves the file as it was and nothing else.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.json")
	f, _ := open(path)
	if err := f.add("a", 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := other("large", path, "sh", "-c", `ulimit -f 16; exec "$0"`).CombinedOutput()
	if err != nil || string(out) != "file too large\n" {
		t.Errorf("got %q, %v; want the reason alone", out, err)
	}
	wantText(t, path, string(text))
	wantFiles(t, filepath.Join(filepath.Dir(path), ".counts.json-*"), 0)
	if err := f.add(strings.Repeat("x", 1<<20), 1); err == nil || !strings.Contains(err.Error(), "more than 1048576") {
		t.Errorf("over MaxSize: got %v, want an error", err)
	}
	wantText(t, path, string(text))
}

func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.json")
	f, _ := open(path)
	unlock, err := f.lock()
	if err != nil {
		t.Fatal(err)
	}
	late, _ := open(path)
	late.Wait = 20 * time.Millisecond
	if err := late.add("a", 1); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want %v", err, ErrLocked)
	}
	if _, err := late.Load(); err != nil {
		t.Errorf("Load under a lock: got %v, want no error", err)
	}
	unlock()
	if err := late.add("a", 1); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere: run this test as another user")
	}
	folder := t.TempDir()
	f, _ := open(filepath.Join(folder, "counts.json"))
	if err := errors.Join(f.add("a", 1), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(folder, 0o700) }()
	if all, err := f.Load(); err != nil || all["a"] != 1 {
		t.Errorf("got %v, %v; want a = 1", all, err)
	}
	if err := f.add("a", 1); err == nil || err.Error() != "permission denied" {
		t.Errorf("got %v, want permission denied", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":3,"checksum":"b59a1c2f","counts":{"a":6}}`))
	f.Add([]byte(`{"version":4}`))
	file, _ := open("counts.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := file.parse(text)
		if err != nil && (len(all) > 0 || !errors.As(err, new(*Damage))) {
			t.Errorf("got %v, %v; want nothing and *Damage", all, err)
		}
	})
}

// A group that may write the folder shares the file.
func TestGroupLock(t *testing.T) {
	folder := t.TempDir()
	for folderMode, want := range map[os.FileMode]os.FileMode{0o700: 0o600, 0o750: 0o600, 0o770: 0o660} {
		path := filepath.Join(folder, folderMode.String())
		if err := os.Chmod(folder, folderMode); err != nil {
			t.Fatal(err)
		}
		lock, err := openLock(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := lock.Stat(); err != nil || info.Mode() != want {
			t.Errorf("folder %v: got mode %v, %v; want %v", folderMode, info.Mode(), err, want)
		}
		_ = lock.Close()
	}
}
