package agent

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

func TestBytesPassThrough(t *testing.T) {
	t.Parallel()
	every := make([]byte, 0, 256)
	for b := range 256 {
		every = append(every, byte(b))
	}
	for name, data := range map[string][]byte{
		"nothing":          nil,
		"no line's end":    []byte("Epoch 1/2"),
		"every byte":       every,
		"carriage returns": []byte("10 %\r20 %\r\n\r\r\n"),
		"not UTF-8":        []byte("Epoch \xff1/2\n\xc3\x28\n\xed\xa0\x80\n"),
		"two lines of 10 MB": append(append(bytes.Repeat([]byte("x"), 10<<20), '\n'),
			bytes.Repeat([]byte("\xe2\x82"), 5<<20)...),
		"an escape that stays": append([]byte("\x1b]0;"), bytes.Repeat([]byte("t"), 1<<20)...),
		"50 MB":                randomBytes(50 << 20),
	} {
		t.Run(name, func(t *testing.T) {
			v := stallspan(t, "run", "--", "tee", "/dev/stderr")
			v.Stdin = bytes.NewReader(data)
			if code := v.run(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !bytes.Equal(v.out.Bytes(), data) {
				t.Errorf("standard output is not the same: %d bytes of %d", v.out.Len(), len(data))
			}
			table, ok := bytes.CutPrefix(v.err.Bytes(), data)
			if !ok || !bytes.HasPrefix(table, []byte("\nwindow ")) {
				t.Errorf("standard error is not the same: %d bytes of %d", v.err.Len(), len(data))
			}
		})
	}
}

func TestSlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	data := randomBytes(5 << 20)
	v := stallspan(t, "run", "--", "cat")
	v.Stdin = bytes.NewReader(data)
	v.Stdout = nil
	out, err := v.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.start()
	var got bytes.Buffer
	for step := int64(64 << 10); ; step *= 2 { // slow at first, or the test takes long
		time.Sleep(200 * time.Millisecond)
		if _, err := io.CopyN(&got, out, step); err != nil {
			break
		}
	}
	if code := v.wait(); code != 0 || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("exit code %d, %d bytes of %d", code, got.Len(), len(data))
	}
}

// Our output may be non-blocking: a program that waits for keys sets its input, a terminal, to that, and it is our
// output too.
func TestOutputThatDoesNotBlock(t *testing.T) {
	t.Parallel()
	data := randomBytes(5 << 20)
	v := stallspan(t, "run", "--", "sh", "-c", "echo ready; read go; exec cat")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	in, err := v.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.Stdout = write
	v.start()
	if _, err := io.ReadFull(read, make([]byte, len("ready\n"))); err != nil { // otherwise it would be seen at the start
		t.Fatal(err)
	}
	if err := unix.SetNonblock(int(write.Fd()), true); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	go func() {
		_, _ = in.Write([]byte("go\n"))
		_, _ = in.Write(data) // fails with the program, and the test then
		_ = in.Close()
	}()
	time.Sleep(300 * time.Millisecond) // the pipe is full meanwhile
	got, err := io.ReadAll(read)
	if code := v.wait(); code != 0 || err != nil || !bytes.Equal(got, data) {
		t.Errorf("exit code %d, %d bytes of %d: %v", code, len(got), len(data), err)
	}
}

func TestReaderThatLeaves(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"stdout", "stderr", "both"} {
		t.Run(left, func(t *testing.T) {
			report := t.TempDir() + "/report.json"
			command := "yes"
			if left == "stderr" {
				command = "yes >&2"
			}
			v := stallspan(t, "run", "--report", report, "--", "sh", "-c", command)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if left != "stderr" {
				v.Stdout = write
			}
			if left != "stdout" {
				v.Stderr = write
			}
			v.start()
			_ = write.Close()
			if _, err := io.ReadFull(read, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			_ = read.Close()
			if code := v.wait(); code != cli.ExitSignalBase+int(unix.SIGPIPE) {
				t.Errorf("exit code %d", code)
			}
			readReport(t, report) // it is written without a reader of the output
			if left == "stdout" && !strings.Contains(v.err.String(), "verdict") {
				t.Errorf("no table: %q", v.err.String())
			}
		})
	}
}
