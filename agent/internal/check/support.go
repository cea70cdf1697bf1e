package check

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
)

// SupportCommand is stallspan support-bundle, the old name of check --bundle.
func SupportCommand() *cobra.Command {
	s := &support{}
	cmd := &cobra.Command{
		Use: "support-bundle", Deprecated: "use stallspan check --bundle FILE", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.path = cmp.Or(s.path, "stallspan-support-"+time.Now().UTC().Format("20060102-150405")+".tar.gz")
			return s.write(cmd)
		},
	}
	cmd.Flags().StringVarP(&s.path, "output", "o", "", "write this `file` (default stallspan-support-TIME.tar.gz)")
	s.flags(cmd)
	return cmd
}

// support collects the parts of a bundle, which has what a report of a bug needs.
type support struct {
	path, config, log string

	redact redactor
}

func (s *support) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.config, "config", "", "check for an agent with this config `file` (stallspan docs agent)")
	cmd.Flags().StringVar(&s.log, "log", "", "with --bundle, the agent's messages in this `file`; - is standard input")
}

// readme is the first file of a bundle.
const readme = `What stallspan check --bundle has collected on %s. Look at all of it before you send it.

version.txt      version of the program and the kernel
check.txt        what it can read on this machine (stallspan check)
status.json      state of the agent (GET /v1/status), or why it does not answer
config.yaml      the agent's config; REDACTED stands for each text that may be a secret
environment.txt  variables that change what it does: names of OTEL_* and STALLSPAN_*, values of others
machine.txt      settings of the kernel, disks and the NVIDIA driver
agent.log        messages of the agent, if they were given with --log
`

// write writes the bundle, and prints its path.
func (s *support) write(cmd *cobra.Command) error {
	if s.config != "" {
		if _, err := readFile(s.config); err != nil {
			return cli.Usagef("cannot read the config: %w", err)
		}
	}
	config, broken := agentconfig.Read(s.config) // a broken one is a reason to write a bundle
	if broken != nil {
		config = agentconfig.Default()
	}
	for _, a := range config.Actions {
		if a.Webhook != nil {
			s.redact.know(string(a.Webhook.Secret)) // which may come from a variable
		}
	}
	if info, err := os.Stat(s.path); err == nil && info.IsDir() {
		return cli.Usagef("%s is a folder: give a file in it", s.path)
	}
	b, err := createBundle(s.path)
	if err != nil {
		return fmt.Errorf("the bundle cannot be written, choose another file: %w", err)
	}
	if err = cmp.Or(s.fill(cmd, b, config, broken), b.close()); err != nil {
		_ = b.file.Close()
		_ = os.Remove(s.path)
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), s.path)
	return output.Printed(err)
}

func (s *support) fill(cmd *cobra.Command, b *bundle, config *agentconfig.Config, broken error) error {
	err := b.add("README.txt", fmt.Sprintf(readme, b.made.UTC().Format(time.RFC3339)))
	for _, f := range []struct {
		name string
		make func() string
	}{
		// The config and the variables come first: their secrets are taken out of all others.
		{"config.yaml", func() string { return s.configFile(broken) }},
		{"environment.txt", s.environment},
		{"version.txt", func() string { return version.Describe() + "\n" + kernelFile("/proc/version") }},
		{"check.txt", func() string {
			var out bytes.Buffer
			draw(output.NewTable(&out), run(cmd.Context(), config))
			return out.String()
		}},
		{"status.json", func() string { return status(cmd.Context(), config) }},
		{"machine.txt", machineFacts},
	} {
		if err == nil {
			err = b.add(f.name, s.redact.text(f.make()))
		}
	}
	if err != nil || s.log == "" {
		return err
	}
	text, err := s.messages(cmd.InOrStdin())
	if err != nil {
		return err
	}
	return b.add("agent.log", s.redact.log(text))
}

func (s *support) configFile(broken error) string {
	if s.config == "" {
		return "# none: see --config\n"
	}
	text, err := readFile(s.config)
	if err == nil {
		text, err = s.redact.yaml(text)
	}
	if err != nil {
		return fmt.Sprintf("# %v\n", err)
	}
	if broken != nil { // an error can have a part of the file
		return "# it is refused: run stallspan check --config " + s.config + "\n" + text
	}
	return text
}

// kernelFile is the text of a small file of /proc or /sys, or why it cannot be read.
func kernelFile(path string) string {
	text, err := readFile(path)
	if err != nil {
		return fmt.Sprintln(err)
	}
	return strings.TrimRight(text, "\n") + "\n"
}

// environment lists variables. Their values may be secrets, so their names are enough.
func (s *support) environment() string {
	var names []string
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "STALLSPAN_") {
			if strings.Contains(name, "HEADERS") || strings.Contains(name, "TOKEN") {
				for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == '=' }) {
					s.redact.know(part)
				}
			}
			names = append(names, name)
			continue
		}
		if slices.Contains([]string{"GOMEMLIMIT", "GOGC", "GOMAXPROCS", "GODEBUG", "LD_LIBRARY_PATH", "LD_PRELOAD",
			"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TZ"}, name) {
			names = append(names, pair)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "\n") + "\n"
}

func status(ctx context.Context, config *agentconfig.Config) string {
	client, err := api.FromEnvironment()
	if err == nil && config.Socket != "" && os.Getenv(api.SocketVariable) == "" {
		client = api.NewClient(config.Socket)
	}
	var status api.Status
	if err == nil {
		status, err = client.Status(ctx)
	}
	if err != nil {
		status.Problems = []string{err.Error()}
	}
	var text strings.Builder
	_ = output.WriteJSON(&text, status) // it has numbers and texts alone
	return text.String()
}

// machineFacts are settings that change what can be read.
func machineFacts() string {
	var out strings.Builder
	for _, pattern := range []string{
		"/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/unprivileged_bpf_disabled",
		"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/kernel/kptr_restrict", "/proc/loadavg",
		"/proc/pressure/io", "/proc/driver/nvidia/version", "/sys/fs/cgroup/cgroup.controllers", "/proc/diskstats",
		"/sys/block/*/queue/rotational", "/sys/block/*/queue/scheduler", "/sys/block/*/size", "/sys/block/*/device/model",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are right
		if len(found) == 0 {
			found = []string{pattern} // for the error
		}
		for _, path := range found {
			fmt.Fprintf(&out, "%s: %s", path, kernelFile(path))
		}
	}
	var limits unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limits) == nil {
		fmt.Fprintf(&out, "RLIMIT_MEMLOCK: %d bytes\n", limits.Cur)
	}
	return out.String()
}

// messages are the agent's, of --log.
func (s *support) messages(in io.Reader) (text string, err error) {
	if s.log == "-" {
		all, err := io.ReadAll(io.LimitReader(in, agentconfig.MaxSize))
		return string(all), err
	}
	if info, err := os.Stat(s.log); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("--log: %s is not a regular file", s.log)
	}
	if text, err = readFile(s.log); err != nil {
		return "", fmt.Errorf("--log: %w", err)
	}
	return text, nil
}

// maxFile bounds a file of a bundle, in bytes. The end of a longer one is left out.
const maxFile = 4 << 20

// bundle is a tar archive that gzip compresses. Its user alone may read it.
type bundle struct {
	file *os.File
	gzip *gzip.Writer
	tar  *tar.Writer
	made time.Time
}

// createBundle makes a bundle. It never replaces a file, and follows no link.
func createBundle(path string) (*bundle, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	b := &bundle{file: file, gzip: gzip.NewWriter(file), made: time.Now()}
	b.tar = tar.NewWriter(b.gzip)
	return b, nil
}

// add adds a file.
func (b *bundle) add(name, text string) error {
	if len(text) > maxFile {
		text = text[:maxFile]
	}
	header := &tar.Header{Name: "stallspan-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.made}
	if err := b.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := b.tar.Write([]byte(text)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// close ends the bundle.
func (b *bundle) close() error {
	for _, end := range []func() error{b.tar.Close, b.gzip.Close, b.file.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}
