package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// writeTo makes a copy of the test program a writer of that folder, until it is killed. It prints the number of each
// interval that Flush has written.
const writeTo = "STALLSPAN_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	folder := os.Getenv(writeTo)
	if folder == "" {
		os.Exit(m.Run())
	}
	if err := writeForever(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeForever(folder string) error {
	w := New(Options{Folder: folder, MaxSize: DefaultMaxSize, MaxAge: DefaultMaxAge})
	err := w.Open()
	if err != nil {
		return err
	}
	first := 0
	err = Each(folder, time.Time{}, time.Time{}, func(_ string, file io.Reader) error {
		f, err := readFile(file, time.Time{}, time.Time{})
		first += len(f.numbers)
		return err
	})
	for i := first; err == nil; i++ {
		w.add(i)
		if err = w.Flush(stamp(began)); err == nil { // all on one day
			_, err = fmt.Println(i)
		}
	}
	return err
}

// A writer that is killed loses nothing that Flush has written, and the next one continues. Another process reads
// meanwhile, and never sees anything but a beginning of what is written.
func TestKilled(t *testing.T) {
	folder := t.TempDir()
	last := -1
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writeTo+"="+folder)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if n == 10 {
				got := readFolder(t, folder, time.Time{}, time.Time{})
				wantNumbers(t, "while it is written", got.numbers, 0, max(last, len(got.numbers)-1))
			}
			if n == 20+7*round {
				if err := cmd.Process.Kill(); err != nil { // what it has printed meanwhile counts, too
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		got := readFolder(t, folder, time.Time{}, time.Time{})
		if n := len(got.numbers) - 1; n != last && n != last+1 || got.damaged > 0 {
			t.Fatalf("round %d: got %d intervals and %d damaged places, want %d, or one more that was not announced", round,
				n+1, got.damaged, last+1)
		}
		wantNumbers(t, "after it was killed", got.numbers, 0, len(got.numbers)-1)
	}
	if last < 20*20 {
		t.Errorf("got %d intervals in all, want those of 20 writers", last)
	}
}

// A full disk is an error, and what waits is written when there is room again.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<10), fileMode); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(disk, "history")
	w := opened(t, folder, DefaultMaxSize)
	noise := newNoise()
	columns := columnsOf("vda", 12)
	i := 0
	var err error
	for ; err == nil && i < 10_000; i++ {
		w.Add(Devices, columns, at(i), period, append([]float64{float64(i) * kilobyte}, noise.values(len(columns)-1)...))
		err = w.Flush(stamp(at(i)))
	}
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("got %v, want %v and what to do", err, unix.ENOSPC)
	}
	full := readFolder(t, folder, time.Time{}, time.Time{})
	wantNumbers(t, "when it is full", full.numbers, 0, i-2)
	if full.damaged > 0 {
		t.Errorf("got %d damaged places, want none", full.damaged)
	}
	if err := w.Flush(stamp(at(i))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a second attempt: got %v, want %v", err, unix.ENOSPC)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	closed(t, w, at(i))
	wantNumbers(t, "with room again", readFolder(t, folder, time.Time{}, time.Time{}).numbers, 0, i-1)
}
