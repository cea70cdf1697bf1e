package agentconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/emit"
)

const secretText = "0123456789abcdef0123456789abcdef"

func secretAt(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestActionsConfig(t *testing.T) {
	t.Setenv("HOOK", secretText)
	file := secretAt(t, secretText+"\n", 0o640)
	c, err := Parse([]byte(`
actions:
  - on: [stallspan.gpu.lost, stallspan.disk.health]
    exec: {command: [/bin/true, "$(x)", 5], user: root, timeout: 5s, per_minute: 3}
  - severity: error
    webhook: {url: "https://example.com/x", secret_file: ` + file + `, timeout: 2s}
  - webhook: {url: "http://localhost:1/x", secret_env: HOOK}
`))
	if err != nil {
		t.Fatal(err)
	}
	program := &action.Exec{Command: []string{"/bin/true", "$(x)", "5"}, User: "root", Timeout: 5 * time.Second,
		PerMinute: 3}
	remote := &action.Webhook{
		URL: "https://example.com/x", SecretFile: file, Secret: []byte(secretText), Timeout: 2 * time.Second}
	local := &action.Webhook{URL: "http://localhost:1/x", SecretEnv: "HOOK", Secret: []byte(secretText)}
	want := []action.Config{
		{On: []string{"stallspan.gpu.lost", "stallspan.disk.health"}, Exec: program},
		{Severity: emit.Error, Webhook: remote},
		{Webhook: local},
	}
	if diff := cmp.Diff(want, c.Actions); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestWrongActions(t *testing.T) {
	open, long := secretAt(t, secretText, 0o644), secretAt(t, strings.Repeat("x", 4<<10+1), 0o600)
	for text, want := range map[string]string{
		"actions: {exec: x}": "line 1: a mapping is not a " +
			"list of actions",
		"actions:\n  - exec: {command: /bin/true}":                                        `line 2: "/bin/true" is not a list, like [a, b]`,
		"actions:\n  - exec: {command: [bin/true]}":                                       "actions[0]: exec needs a command",
		"actions:\n  - exec: {comand: [/bin/true]}":                                       "did you mean command?",
		"actions:\n  - on: [stallspan.gpu.lst]\n    exec: {command: [/bin/true]}":         `there is no event "stallspan.gpu.lst"`,
		"actions:\n  - severity: loud\n    exec: {command: [/bin/true]}":                  `"loud" is not a severity: choose info, warn or error`,
		"actions:\n  - webhook: {url: 'http://example.com', secret_env: PATH}":            "start with https",
		"actions:\n  - webhook: {url: 'https://example.com'}":                             "the secret of the webhook has 0 bytes",
		"actions:\n  - webhook: {url: 'https://example.com', secret_env: NOT_SET_AT_ALL}": "is not set",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: " + open + "}":  "open to all users",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: secret}":        "absolute path",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: " + long + "}":  "larger than 4 KiB",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: /dev/null}":     "is not a regular file",
		"actions:\n  - {}": "either exec or webhook",
		"actions:\n  - webhook: {url: 'https://example.com', secret_env: A, secret_file: B}": "given twice",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secretText) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// A config that others may write must not start programs or name files to write. A webhook in it is harmless.
func TestConfigWritableByOthers(t *testing.T) {
	for text, ok := range map[string]bool{
		"actions: [{exec: {command: [/bin/true]}}]":                                                            false,
		"actions: [{webhook: {url: 'http://localhost', secret_file: " + secretAt(t, secretText, 0o600) + "}}]": true,
		"smart: {smartctl: /usr/sbin/smartctl}":                                                                false,
		"smart: {sudo: true}":                                                                                  false,
		"sampling: {nvml: /usr/lib/libnvidia-ml.so}":                                                           false,
		"slow: {baseline: /etc/passwd}":                                                                        false,
		"slow: {factor: 2}":                                                                                    true,
		"socket: /etc/passwd":                                                                                  false,
		"endpoint: 4319":                                                                                       true,
	} {
		path := secretAt(t, text, 0o666)
		for mode, safe := range map[os.FileMode]bool{0o666: false, 0o664: false, 0o644: true} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			want := ok || safe
			if _, err := Read(path); want != (err == nil) || !want && !strings.Contains(err.Error(), "chmod go-w") {
				t.Errorf("%s, mode %o: got %v, want accepted %v", text, mode, err, want)
			}
		}
	}
}

// The examples of the documentation are valid. The secret comes from the test.
func TestActionsDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.ReplaceAll(example, "/etc/stallspan/webhook.secret", secretAt(t, secretText, 0o600))
	if c, err := Parse([]byte(example)); err != nil || len(c.Actions) != 2 {
		t.Errorf("got %+v, %v; want two actions from\n%s", c, err, example)
	}
	text,
		err := os.ReadFile("../../../examples/agent/events.yaml") // perhaps of another user than the one who runs the tests
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Parse(text); err != nil || len(c.Actions) != 1 {
		t.Errorf("the example: got %+v, %v; want one action", c, err)
	}
	for _, name := range emit.EventNames() {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/events.md does not list %s", name)
		}
	}
}
