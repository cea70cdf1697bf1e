package agent

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

// unpacked returns the files of a bundle.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "stallspan-support/")] = string(text)
	}
}

// supportConfig has a secret wherever a config can have one. Each begins with "hidden".
const supportConfig = `# hidden-comment
endpoint: 0
token_file: %[1]s/token # hidden-comment
sampling: {interval: 50ms}
actions:
  - webhook: {url: 'https://user:hidden-userinfo@127.0.0.1:1/hidden-path?key=hidden-query', secret_file: %[1]s/secret}
  - exec: {command: [/bin/echo, --password=hidden-argument], timeout: 3s}
`

// A bundle has what helps, and none of the secrets that the agent knows, wherever they appear.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("token", "hidden-token-0123456789")
	write("secret", "hidden-secret-0123456789")
	config := write("config.yaml", fmt.Sprintf(supportConfig, folder))
	log := write("log", "warning: post https://u:hidden-userinfo@host/x?y=hidden-other: Authorization: Bearer hidden-bearer\n"+
		"token=hidden-named the agent said hidden-token-0123456789 and hidden-header\nuseful line\n")
	output := filepath.Join(folder, "out.tar.gz")
	bundle := func() *invocation {
		v := stallspan(t, "check", "--config", config, "--log", log, "--bundle", output)
		v.Env = append(v.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hidden-env@127.0.0.1:1/?a=hidden-env",
			"OTEL_EXPORTER_OTLP_HEADERS=x-key=hidden-header", "STALLSPAN_TOKEN=hidden-variable",
			"STALLSPAN_SOCKET="+folder+"/none.sock")
		return v
	}
	v := bundle()
	if code := v.run(); code != 0 || strings.TrimSpace(v.out.String()) != output {
		t.Fatalf("got exit code %d, %s and %s, want the path %s", code, &v.out, &v.err, output)
	}
	if info, err := os.Stat(output); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v and %v, want a file that its user alone may read", info, err)
	}
	files := unpacked(t, output)
	for name, text := range files {
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "hidden") {
				t.Errorf("%s: got a secret in %q", name, line)
			}
		}
	}
	for name, want := range map[string]string{
		"README.txt": "Look at all of it", "version.txt": "stallspan version", "check.txt": "processes",
		"status.json": "none.sock", "environment.txt": "OTEL_EXPORTER_OTLP_HEADERS\n", "machine.txt": "perf_event_paranoid",
		"agent.log": "useful line", "config.yaml": "interval: 50ms",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: got %q, want %q in it", name, files[name], want)
		}
	}
	if again := bundle(); again.run() == 0 || !strings.Contains(again.err.String(), "choose another file") {
		t.Errorf("a file that exists: got %q, want it refused", &again.err)
	}
	old := stallspan(t, "support-bundle", "--output", filepath.Join(folder, "old.tar.gz"))
	if code := old.run(); code != 0 || !strings.Contains(old.err.String(), "use stallspan check --bundle") ||
		unpacked(t, filepath.Join(folder, "old.tar.gz"))["check.txt"] == "" {
		t.Errorf("the old name: got exit code %d and %q, want a bundle and the new name", code, &old.err)
	}
	for want, args := range map[string][]string{
		"give --bundle FILE, too":      {"--log", "-"},
		"cannot read the config: open": {"--config", folder + "/nofile", "--bundle", folder + "/other.tar.gz"},
		"is a folder: give a file":     {"--bundle", folder},
	} {
		if v := stallspan(t, append([]string{"check"}, args...)...); v.run() != cli.ExitUsage ||
			!strings.Contains(v.errorLine(), want) || v.out.Len() > 0 {
			t.Errorf("%v: got %q and %q, want a usage error with %q", args, &v.out, &v.err, want)
		}
	}
}

// A config that the agent refuses is a reason for a bundle. Its text is not in the error.
func TestSupportBundleOfABadConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"endpoint: [hidden\n":       "# it is not YAML, and is left out\n",
		"tokn: hidden-by-a-typo\n":  "tokn: REDACTED\n",
		"a: &b hidden-x\nc: *b\n":   "a: REDACTED\nc: REDACTED\n",
		"hidden-key-is-a-name: 1\n": "",
	} {
		config := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(t.TempDir(), "out.tar.gz")
		v := stallspan(t, "check", "--config", config, "--bundle", output)
		if code := v.run(); code != 0 {
			t.Fatalf("got exit code %d: %s", code, &v.err)
		}
		if got := unpacked(t, output)["config.yaml"]; !strings.HasSuffix(got, want) ||
			strings.Contains(strings.ReplaceAll(got, "hidden-key", ""), "hidden") {
			t.Errorf("%q: got %q, want %q at its end, and no secret", text, got, want)
		}
	}
}
