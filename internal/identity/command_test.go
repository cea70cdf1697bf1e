package identity

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

func TestNameOf(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string // a regexp
	}{
		{[]string{"/opt/serve", "--port", "1"}, "serve"},
		{[]string{"python3", "train.py"}, "train.py"},
		{[]string{"/usr/bin/python3.11", "-u", "/work/train.py", "--data", "x.sh"}, "train.py"},
		{[]string{"python", "-m", "models.train", "--lr", "1"}, "models.train"},
		{[]string{"python", "-m", "torch.distributed.run", "--nproc", "4", "train.py"}, "train.py"},
		{[]string{"env", "A=1", "bash", "run.sh", "-c", "x.py"}, "run.sh"},
		{[]string{"bash", "-c", "cd /work && exec python3 /a/train.py --lr 1"}, "train.py"},
		{[]string{"nice", "bash", "-lc", "for i in 1 2; do ./prepare.sh; done; python3 train.py"}, "prepare.sh"},
		{[]string{"bash", "-c", "echo Epoch 1"}, "bash -c [0-9a-f]{8}"},
		{[]string{"python3", "-c", "import train"}, "python -c [0-9a-f]{8}"},
		{[]string{"perl", "-e", "print 1"}, "perl -e [0-9a-f]{8}"},
		{[]string{"/usr/bin/node", "--max-old-space-size=99", "/srv/load.mjs", "a.js"}, "load.mjs"},
		{[]string{"Rscript", "fit.R"}, "fit.R"},
		{[]string{"julia", "--threads=4", "train.jl"}, "train.jl"},
		{[]string{"/opt/serve", "--page", "a.js"}, "serve"},
		{[]string{"bash", "-c"}, "bash"},
		{[]string{"gzip", "-c", "x"}, "gzip"},
		{[]string{"bash", "--rc"}, "bash"},
	} {
		if got := NameOf(c.argv); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("%q: got %q, want %s", c.argv, got, c.want)
		}
	}
	for code, want := range map[string]string{"-c": "sh -c", "-lc": "sh -lc"} { // and the table shows no hash
		name := NameOf([]string{"sh", code, "export TOKEN=x"})
		w := window.Window{Kind: window.Custom, Name: name}
		if got := w.Label(); got != want || got == name {
			t.Errorf("%s: got the label %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"train.py", "node -e", "bash -c 12345678x", "llama -q deadbeef"} {
		if got := window.ShownName(name); got != name {
			t.Errorf("got %q for %q, want it as it is", got, name)
		}
	}
	if one, other := NameOf([]string{"sh", "-c", "a"}), NameOf([]string{"sh", "-c", "b"}); one == other {
		t.Errorf("got %q for two programs, want two names", one)
	}
}

// A process without a unit, pod or container is named after the script of its interpreter.
func TestNameOfAScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "train.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 60\ntrue\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", script, "--token", "secret")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() }()
	program := filepath.Base(programOf("/proc", c.Process.Pid))
	got := ""
	for began := time.Now(); got != "train.sh" && time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		got = commandOf("/proc", c.Process.Pid, program) // the kernel sets the command line late in execve
	}
	if got != "train.sh" {
		t.Errorf("got the name %q, want train.sh", got)
	}
	if got := commandOf("/proc", c.Process.Pid, "serve"); got != "serve" {
		t.Errorf("of another program: got %q, want its own name", got)
	}
}
