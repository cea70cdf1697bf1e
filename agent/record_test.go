package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/record"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// rawReport is a report that keeps the bytes of its windows.
type rawReport struct {
	Run      json.RawMessage
	Windows  []json.RawMessage
	Problems []string
}

func readRaw(t *testing.T, path string) (d rawReport) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("got the error %v, want none: %s", err, text)
	}
	return d
}

// checkReplayed replays a recording, and compares the result with the report that was made with it.
func checkReplayed(t *testing.T, report string, files ...string) *invocation {
	t.Helper()
	again := filepath.Join(t.TempDir(), "again.json")
	v := stallspan(t, append([]string{"replay", "--report", again}, files...)...)
	if code := v.run(); code != 0 {
		t.Fatalf("replay: exit code %d: %s", code, v.err.String())
	}
	was, is := readRaw(t, report), readRaw(t, again)
	if !bytes.Equal(was.Run, is.Run) {
		t.Errorf("the run was %s\nand is %s", was.Run, is.Run)
	}
	if len(was.Windows) != len(is.Windows) {
		t.Fatalf("%d windows, and %d replayed", len(was.Windows), len(is.Windows))
	}
	for i := range was.Windows {
		if !bytes.Equal(was.Windows[i], is.Windows[i]) {
			t.Errorf("the window was %s\nand is %s", was.Windows[i], is.Windows[i])
		}
	}
	if len(is.Problems) > 0 {
		t.Errorf("problems: %v", is.Problems)
	}
	return v
}

// worker is a program with epochs and a load that reads, computes and sleeps.
const worker = `
echo Epoch 1/3
head -c 20000000 /dev/zero > "$0"; sync "$0"; cat "$0" > /dev/null
echo loading m; sleep 0.2; echo m is loaded
echo Epoch 2/3
x=0; while [ $x -lt 100000 ]; do x=$((x+1)); done
echo Epoch 3/3
sleep 0.3
exit 4
`

func TestRecordedRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, report := folder+"/f.gz", folder+"/a.json"
	v := stallspan(t, "run", "--record", file, "--report", report, "--load-begin", "loading (.*)", "--load-end",
		"is loaded",
		"--", "sh", "-c", worker, folder+"/data")
	if code := v.run(); code != 4 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	if d := readRaw(t, report); len(d.Windows) != 4 {
		t.Fatalf("%d windows: %s", len(d.Windows), v.err.String())
	}
	replayed := checkReplayed(t, report, file)
	table, said := strings.CutSuffix(v.err.String(), "stallspan: the program failed: exit code 4\n") // not of a recording
	if replayed.out.String() != table || !said || replayed.err.Len() != 0 {
		t.Errorf("the table was %s\nand is %s%s", v.err.String(), replayed.out.String(), replayed.err.String())
	}
	printed := stallspan(t, "replay", "--json", "-")
	input, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	printed.Stdin = input
	if code := printed.run(); code != 0 || len(parseReport(t, printed.out.Bytes()).Windows) != 4 {
		t.Errorf("from standard input: exit code %d: %s%s", code, printed.out.String(), printed.err.String())
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v %v, want a file of mode 0600", info, err)
	}
}

// A replay keeps the delay of a GPU's readings.
func TestRecordedRunWithAGPU(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	folder := t.TempDir()
	file, report := folder+"/f.gz", folder+"/a.json"
	v := stallspan(t, "run", "--record", file, "--report", report, "--", "sh", "-c",
		"for i in 1 2 3 4 5; do echo Epoch $i/5; sleep 0.27; done; exit 4")
	v.Env = append(v.Env, "LD_LIBRARY_PATH="+filepath.Dir(library))
	if code := v.run(); code != 4 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	if d := readReport(t, report); len(d.Windows) != 5 {
		t.Fatalf("%d windows: %s", len(d.Windows), v.err.String())
	} else if d.Windows[0].GPU == nil {
		t.Skip("needs cgo, to load the stand-in for the NVIDIA driver's library")
	}
	checkReplayed(t, report, file)
}

// startRecord starts a recording with a socket of its own, and returns when that answers.
func startRecord(t *testing.T, args ...string) (*invocation, *liveOutput, string) {
	t.Helper()
	socket := socketIn(t)
	v := stallspan(t, append([]string{"record"}, args...)...)
	var said liveOutput
	v.Stderr = &said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	v.start()
	said.until(t, 1, "stop with ^C")
	return v, &said, socket
}

func TestRecord(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, report := folder+"/f.gz", folder+"/a.json"
	v, said, socket := startRecord(t, "--report", report, file)
	program := stallspan(t)
	program.Env = append(program.Env, actAs+"=announcer", "STALLSPAN_SOCKET="+socket)
	if code := program.run(); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, program.out.String(), program.err.String())
	}
	if err := v.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if d := readReport(t, report); len(d.Windows) != 3 || d.Run.Name != record.Name || d.Run.Unfinished {
		t.Errorf("got %+v, want three windows in a complete recording", d)
	}
	if text := said.String(); !strings.Contains(text, "stallspan: recorded ") ||
		!strings.Contains(text, " to "+file+": ") {
		t.Errorf("said %s", text)
	}
	replayed := checkReplayed(t, report, file)
	if replayed.out.String() != v.out.String() || !strings.Contains(v.out.String(), "epoch 3 ") {
		t.Errorf("the table was %s\nand is %s", v.out.String(), replayed.out.String())
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

func TestRecordForAWhile(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/f.gz"
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	v := stallspan(t, "record", "--for", "300ms", file)
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	if code := v.run(); code != 0 || !strings.Contains(v.err.String(), "another stallspan serves "+socket) {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
	stop(t, agent)
	if !strings.HasPrefix(v.out.String(), "\ndevice ") || !strings.Contains(v.out.String(), "\nOf 1 interval.") {
		t.Errorf("got the table %s, want one of devices", v.out.String())
	}
	out := stallspan(t, "record", "-")
	if code := out.run(); code != cli.ExitUsage || !strings.Contains(out.errorLine(), "standard output") {
		t.Errorf("record -: exit code %d: %s", code, out.err.String())
	}
}

// A crash may lose at most one second, and on a busy machine another one because of a late flush.
func TestRecordIsKilled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, again := folder+"/f.gz", folder+"/b.json"
	v, _, socket := startRecord(t, file)
	client := api.NewClient(socket)
	for _, name := range []string{"ended", "open"} {
		begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Custom, Name: name})
		if err == nil && name == "ended" {
			_, err = client.End(t.Context(), begun.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	time.Sleep(3 * time.Second)
	lasted := time.Since(began)
	if err := v.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = v.Wait()

	replayed := stallspan(t, "replay", "--report", again, file)
	code := replayed.run()
	if line := replayed.errorLine(); code != cli.ExitFailed || !strings.Contains(line, file+": the recording is cut off") {
		t.Errorf("exit code %d: %s", code, line)
	}
	if !strings.Contains(replayed.out.String(), "open (part) ") {
		t.Errorf("the table: %s", replayed.out.String())
	}
	d := readReport(t, again)
	if len(d.Windows) != 2 || d.Windows[0].Unfinished || !d.Windows[1].Unfinished || !d.Run.Unfinished ||
		d.Run.Name != record.Name {
		t.Fatalf("got %+v, want one window complete, the other and the recording cut", d)
	}
	if got := d.Windows[1].Duration; got < lasted.Seconds()-2 || got > lasted.Seconds()+1 {
		t.Errorf("%v s of %v are left", got, lasted)
	}

	// The next recording to this file keeps the saved one.
	next := stallspan(t, "record", "--for", "10ms", file)
	next.Env = append(next.Env, "STALLSPAN_SOCKET="+socket)
	if code := next.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, next.err.String())
	}
	if code := stallspan(t, "replay", "--json", file).run(); code != 0 {
		t.Errorf("the new one: exit code %d", code)
	}
	old := stallspan(t, "replay", file+".1")
	if code := old.run(); code != cli.ExitFailed || old.out.String() != replayed.out.String() {
		t.Errorf("exit code %d, %s", code, old.out.String())
	}
}

func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	foreign := folder + "/foreign"
	if err := os.WriteFile(foreign, []byte("a diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		code int
		says string
		args []string
	}{
		{cli.ExitUsage, "record needs one file", []string{"record"}},
		{cli.ExitUsage, "--for -1s", []string{"record", "--for", "-1s", folder + "/x"}},
		{cli.ExitFailed, "exists and is not a recording", []string{"record", foreign}},
		{cli.ExitFailed, "is not a regular file", []string{"record", folder}},
		{cli.ExitFailed, "give a file in a folder that exists and is yours: no such file or directory",
			[]string{"record", folder + "/no/x"}},
		{cli.ExitRun, "exists and is not a recording", []string{"run", "--record", foreign, "--", "touch",
			folder + "/started"}},
	} {
		v := stallspan(t, test.args...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+folder+"/s")
		if code := v.run(); code != test.code || !strings.Contains(v.errorLine(), test.says) {
			t.Errorf("%v: got exit code %d, %s; want %d, %q", test.args, code, v.err.String(), test.code, test.says)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// A terminal that is closed ends a recording properly.
func TestRecordHangup(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/f.gz"
	v, said, _ := startRecord(t, file)
	if err := v.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code := stallspan(t, "replay", file).run(); code != 0 {
		t.Errorf("replay: exit code %d", code)
	}
}
