package api

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// examples returns the blocks of docs/api.md in one language.
func examples(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(m[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("docs/api.md: got no example in %s", language)
	}
	return blocks
}

// run runs an example of the document with a program of this machine.
func run(t *testing.T, s *service, script, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s, for its examples", program)
	}
	cmd := exec.Command(path, args...)
	module, err := filepath.Abs("../../python/src")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), SocketVariable+"="+s.path, "PYTHONPATH="+module, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = strings.NewReader(script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: got %v, want exit code 0\n%s%s", program, err, &stdout, &stderr)
	}
	return stdout.String()
}

func TestCurlExamples(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl, for its examples")
	}
	s := serve(t, nil)
	out := run(t, s, strings.Join(examples(t, "sh"), "\n"), "sh", "-eu")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 {
		t.Fatalf("got %d responses, want 5:\n%s", len(lines), out)
	}
	if got := parseAs[Begun](t, lines[0]); got.ID == "" {
		t.Errorf("begin: got %s, want an ID", lines[0])
	}
	if got := parseAs[report](t, lines[1]); got.Kind != "model_load" || got.Verdict == "" {
		t.Errorf("end: got %s, want a model load with a verdict", lines[1])
	}
	if got := parseAs[report](t, lines[2]); got.Kind != "model_load" {
		t.Errorf("read: got %s, want a model load", lines[2])
	}
	type list struct{ Running, Ended []report }
	if got := parseAs[list](t, lines[3]); len(got.Running) != 1 || len(got.Ended) != 1 {
		t.Errorf("list: got %s, want one open and one ended window", lines[3])
	}
	if got := parseAs[Status](t, lines[4]); got.WindowsOpen != 1 {
		t.Errorf("status: got %s, want one open window", lines[4])
	}
	if own := s.opener.windows[1].PID; own != s.opener.windows[0].PID || own == 0 {
		t.Errorf("got pid %d, want that of the first window", own)
	}
}

// TestCurlWithABodyThatIsTooLarge checks that curl prints the response although it has more to send.
func TestCurlWithABodyThatIsTooLarge(t *testing.T) {
	s := serve(t, nil)
	out := run(t, s, strings.Repeat("x", 8<<20), "curl", "-sS", "--unix-socket", s.path, "http://localhost/v1/windows",
		"--data-binary", "@-")
	if got := parseAs[Error](t, out); !strings.Contains(got.Text, "larger than 65536 bytes") {
		t.Errorf("got %s, want the limit of a body", out)
	}
}

func TestPythonExample(t *testing.T) {
	s := serve(t, nil)
	for _, script := range examples(t, "python") {
		out := run(t, s, script, "python3", "-")
		verdict, finding, _ := strings.Cut(strings.TrimSpace(out), " ")
		if verdict == "" || !strings.HasSuffix(finding, ".") {
			t.Errorf("got %q, want a verdict and a finding", out)
		}
	}
	ended := s.monitor.Windows.Ended()
	if len(ended) != 1 || !ended[0].HasEpoch || ended[0].Epoch != 3 || ended[0].PID == os.Getpid() || ended[0].PID == 0 {
		t.Errorf("got %+v, want one window of epoch 3 of another process", ended)
	}
}

// TestDocumentNamesEveryKey compares the document with the keys of an announcement.
func TestDocumentNamesEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.Contains(string(text), "\n- `"+key+"`") {
			t.Errorf("docs/api.md has no line for %s", key)
		}
	}
}
