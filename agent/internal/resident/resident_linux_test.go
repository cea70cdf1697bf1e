package resident

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const size = 1 << 20 // bytes of a mapped file

// mapped returns a new file's path and its contents, mapped privately.
func mapped(t *testing.T) (path string, memory []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, bytes.Repeat([]byte("code"), size/4), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	memory, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	return path, memory
}

func protect(t *testing.T, memory []byte) {
	t.Helper()
	if err := unix.Mprotect(memory, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
}

// residentOf returns how many bytes of a mapping are in this process's memory.
func residentOf(t *testing.T, memory []byte) (bytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	from := uintptr(0)
	inside := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(fields[0], ":") {
			low, _, _ := strings.Cut(fields[0], "-")
			address, err := strconv.ParseUint(low, 16, strconv.IntSize)
			if err != nil {
				t.Fatal(err)
			}
			from = uintptr(address)
			first := addressOf(memory)
			inside = first <= from && from < first+uintptr(len(memory))
		} else if fields[0] == "Rss:" && inside {
			bytes += atoi(t, fields[1]) << 10
		}
	}
	return bytes
}

func TestReleaseUnmapsAndKeepsContents(t *testing.T) {
	path, memory := mapped(t)
	protect(t, memory)
	if !bytes.Equal(memory, bytes.Repeat([]byte("code"), size/4)) {
		t.Fatal("the mapping differs from the file")
	}
	if got := residentOf(t, memory); got != size {
		t.Fatalf("resident before: got %d bytes, want %d", got, size)
	}
	f := fileAt(t, path)
	if err := f.divide(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.release(); err != nil {
			t.Fatal(err)
		}
		if got := residentOf(t, memory); got != 0 {
			t.Fatalf("resident after the release: got %d bytes, want 0", got)
		}
		if got := memory[size/2]; got != 'c' {
			t.Fatalf("a byte read again: got %q, want %q", got, 'c')
		}
		if got := residentOf(t, memory); got == 0 || got > int(block) {
			t.Fatalf("resident after one byte was read: got %d bytes, want 1 to %d", got, block)
		}
	}
}

// A breakpoint of a debugger, an uprobe or a relocation is a page that differs from the file.
func TestReleaseKeepsWhatDiffers(t *testing.T) {
	path, memory := mapped(t)
	memory[size/2] = 'X'
	protect(t, memory)
	if err := fileAt(t, path).release(); err != nil {
		t.Fatal(err)
	}
	if got := memory[size/2]; got != 'X' {
		t.Errorf("a changed byte after the release: got %q, want %q", got, 'X')
	}
}

func TestWhatCanBeWrittenIsLeftOut(t *testing.T) {
	path, _ := mapped(t)
	if got, err := mappingsOf(path); err != nil || len(got) != 0 {
		t.Errorf("mappings of a file that can be written: got %v, %v, want none", got, err)
	}
}

func TestReleaseOfThisProgram(t *testing.T) {
	f, err := own()
	if err != nil {
		t.Fatal(err)
	}
	if len(f) == 0 {
		t.Fatal("mappings of this program: got none, want some")
	}
	if err := errors.Join(f.divide(), f.release()); err != nil {
		t.Fatal(err)
	}
}

func fileAt(t *testing.T, path string) file {
	t.Helper()
	f, err := mappingsOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f) != 1 {
		t.Fatalf("mappings of %s: got %d, want 1", path, len(f))
	}
	return f
}

func addressOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
