package agent

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killedProgram prints who runs it, waits for a file, prints many lines on both outputs, and says how it ended. With an
// argument it waits for another file in between: on one terminal, a line of one output may be cut by the other.
const killedProgram = `both() { echo line $1; [ $apart ] || echo error $1 >&2; }
await() { while [ ! -e $1 ]; do sleep 0.01; done; }
apart=$1
(echo begun $PPID; await go
i=0; while [ $i -lt 2000 ]; do both $i; i=$((i+1)); done
[ ! $apart ] || { await more; i=0; while [ $i -lt 2000 ]; do echo error $i >&2; i=$((i+1)); done; }
exit 7)
echo $? > ended.new; mv ended.new ended`

// A program goes on when run is killed. All that it prints arrives, and it ends as it would without us.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "pipe", "terminal"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			v := stallspan(t, "run", "--quiet", "--", "sh", "-c", killedProgram, "sh")
			if kind == "terminal" {
				v.Args = append(v.Args, "apart")
			}
			v.Dir = t.TempDir()
			fileText := func(name string) func() string {
				return func() string { text, _ := os.ReadFile(filepath.Join(v.Dir, name)); return string(text) }
			}
			create := func(name string) *os.File {
				file, err := os.Create(filepath.Join(v.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = file.Close() })
				return file
			}
			var output, errors func() string
			switch kind {
			case "file":
				v.Stdout, v.Stderr = create("output"), create("errors")
				output, errors = fileText("output"), fileText("errors")
			case "pipe":
				var out liveOutput
				v.Stdout, v.Stderr = &out, create("errors")
				output, errors = out.String, fileText("errors")
			case "terminal": // below a shell, whose end would be the end of the session
				v.Path, v.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@"; read end`}, v.Args...)
				screen := onScreen(t, v)
				output = func() string { return strings.ReplaceAll(screen.String(), "\r\n", "\n") }
				errors = output
			}
			if kind != "terminal" {
				v.start()
			}
			arrives(t, output, "begun ")
			arrives(t, output, "\n")
			var run int
			if _, err := fmt.Sscanf(output(), "begun %d\n", &run); err != nil {
				t.Fatalf("got %q: %v", output(), err)
			}
			kill(t, run)
			create("go")
			arrives(t, output, "line 1999\n")
			create("more")
			arrives(t, errors, "error 1999\n")
			arrives(t, fileText("ended"), "7\n")
			for stream, text := range map[string]string{"line": output(), "error": errors()} {
				next := 0
				for line := range strings.Lines(text) {
					if line == fmt.Sprintf("%s %d\n", stream, next) {
						next++
					}
				}
				if next != 2000 {
					t.Errorf("%ss in order: got %d, want 2000", stream, next)
				}
			}
			if got := strings.Count(errors(), "stallspan: run was killed"); got != 1 {
				t.Errorf("got %d notices that run was killed, want 1", got)
			}
			if kind == "terminal" {
				_ = v.Process.Kill()
			}
			_ = v.Wait()
		})
	}
}

// arrives waits until a text contains want.
func arrives(t *testing.T, text func() string, want string) {
	t.Helper()
	for end := time.Now().Add(slowest / 2); !strings.Contains(text(), want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %q, want %q in it", last(text(), 500), want)
		}
	}
}

func last(text string, n int) string { return text[max(0, len(text)-n):] }

// kill kills run at once, and removes what it has left after the test.
func kill(t *testing.T, run int) {
	t.Helper()
	groups := cgroupsOfRuns(fmt.Sprintf("%d-*", run))
	if err := unix.Kill(run, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, group := range groups {
			for end := time.Now().Add(slowest / 6); os.Remove(group) != nil && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
		}
	})
}

// At whatever moment run is killed, while output flows and its reader is slow, no more is lost than what run was
// passing on.
func TestKilledInTheFlow(t *testing.T) {
	t.Parallel()
	want, err := exec.Command("seq", "1", "200000").Output()
	if err != nil {
		t.Skipf("needs seq: %v", err)
	}
	for round := range 5 {
		v := stallspan(t, "run", "--", "seq", "1", "200000")
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		v.Stdout = write
		v.start()
		_ = write.Close()
		got := make([]byte, 0, 2*len(want))
		_ = read.SetReadDeadline(time.Now().Add(slowest / 2))
		for before, after := (round+1)*100_003, false; ; {
			n, err := read.Read(got[len(got):min(len(got)+1<<10, cap(got))])
			got = got[:len(got)+n]
			if len(got) >= before && !after {
				after = true
				time.Sleep(100 * time.Millisecond) // run waits for its reader meanwhile, with output that it has not passed on
				kill(t, v.Process.Pid)
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("round %d: after %d bytes: %v", round, len(got), err)
			}
		}
		same := 0
		for same < min(len(got), len(want)) && got[same] == want[same] {
			same++
		}
		if lost := len(want) - len(got); lost < 0 || lost > 32<<10 || !bytes.Equal(got[same:], want[same+lost:]) {
			t.Errorf("round %d: got %d bytes, in order up to %d, want %d", round, len(got), same, len(want))
		}
		_ = read.Close()
		_ = v.Wait()
	}
}

// The heir ends with run, and does not hold its outputs.
func TestHeirEnds(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", "sh", "-c", `ps -o pid=,args= --ppid $PPID`)
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("needs ps")
	}
	if code := v.run(); code != 0 {
		t.Fatalf("got exit code %d: %s", code, v.err.String())
	}
	var pid int
	for line := range strings.Lines(v.out.String()) {
		if strings.Contains(line, "stallspan-heir") {
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 {
		t.Fatalf("got the processes %q, want an heir among them", v.out.String())
	}
	err := unix.Kill(pid, 0)
	for end := time.Now().Add(slowest / 2); err == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		err = unix.Kill(pid, 0)
	}
	if err != unix.ESRCH {
		t.Errorf("the heir %d after the end: got %v, want %v", pid, err, unix.ESRCH)
	}
}
