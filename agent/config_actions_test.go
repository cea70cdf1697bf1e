package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

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
	c, err := parseConfig([]byte(`
actions:
  - on: [stallspan.gpu.lost, stallspan.disk.health]
    exec: {command: [/bin/true, "$(x)", 5], user: root, timeout: 5s, per_minute: 3}
  - severity: error
    webhook: {url: "https://example.com/x", secret_file: ` + secretAt(t, secretText+"\n", 0o640) + `, timeout: 2s}
  - webhook: {url: "http://localhost:1/x", secret_env: HOOK}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []action.Config{
		{On: []string{"stallspan.gpu.lost", "stallspan.disk.health"},
			Exec: &action.Exec{Command: []string{"/bin/true", "$(x)", "5"}, User: "root", Timeout: 5 * time.Second, PerMinute: 3}},
		{Severity: emit.Error, Webhook: &action.Webhook{URL: "https://example.com/x", Secret: []byte(secretText), Timeout: 2 * time.Second}},
		{Webhook: &action.Webhook{URL: "http://localhost:1/x", Secret: []byte(secretText)}},
	}
	if !reflect.DeepEqual(c.Actions, want) {
		t.Errorf("%+v", c.Actions)
	}
}

func TestWrongActions(t *testing.T) {
	open, long := secretAt(t, secretText, 0o644), secretAt(t, strings.Repeat("x", mostSecret+1), 0o600)
	for text, says := range map[string]string{
		"actions: {exec: x}":                                                              "line 1: a mapping is not a list of actions",
		"actions:\n  - exec: {command: /bin/true}":                                        `line 2: "/bin/true" is not a list, like [a, b]`,
		"actions:\n  - exec: {command: [bin/true]}":                                       "line 2: exec needs a command",
		"actions:\n  - exec: {comand: [/bin/true]}":                                       "did you mean command?",
		"actions:\n  - on: [stallspan.gpu.lst]\n    exec: {command: [/bin/true]}":         "did you mean stallspan.gpu.lost?",
		"actions:\n  - severity: loud\n    exec: {command: [/bin/true]}":                  "info, warn or error",
		"actions:\n  - webhook: {url: 'http://example.com', secret_env: PATH}":            "begin with https",
		"actions:\n  - webhook: {url: 'https://example.com'}":                             "the secret of the webhook has 0 bytes",
		"actions:\n  - webhook: {url: 'https://example.com', secret_env: NOT_SET_AT_ALL}": "is not set",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: " + open + "}":  "open to everybody",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: secret}":        "absolute path",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: " + long + "}":  "longer than 4 KiB",
		"actions:\n  - webhook: {url: 'https://example.com', secret_file: /dev/null}":     "is no file",
		"actions:\n  - {}": "either exec or webhook",
	} {
		if _, err := parseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secretText) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

// A file that everybody may write starts no program; that it names a webhook is no harm.
func TestConfigOfEverybody(t *testing.T) {
	for text, ok := range map[string]bool{
		"actions: [{exec: {command: [/bin/true]}}]":                                                            false,
		"actions: [{webhook: {url: 'http://localhost', secret_file: " + secretAt(t, secretText, 0o600) + "}}]": true,
		"smart: {smartctl: /usr/sbin/smartctl}":                                                                false,
		"sampling: {nvml: /usr/lib/libnvidia-ml.so}":                                                           false,
		"endpoint: 4319": true,
	} {
		path := secretAt(t, text, 0o666)
		if _, err := readConfig(path); ok != (err == nil) || !ok && !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("%s: %v", text, err)
		}
		if err := os.Chmod(path, 0o664); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(path); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The document's example is understood, but for its secret and its program, which are not here.
func TestActionsDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.ReplaceAll(example, "/etc/stallspan/webhook.secret", secretAt(t, secretText, 0o600))
	if c, err := parseConfig([]byte(example)); err != nil || len(c.Actions) != 2 {
		t.Errorf("%v in\n%s", err, example)
	}
	if c, err := readConfig("../examples/agent/events.yaml"); err != nil || len(c.Actions) != 1 {
		t.Errorf("the example: %+v, %v", c, err)
	}
	for _, name := range emit.EventNames() {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("docs/events.md does not list %s", name)
		}
	}
}
