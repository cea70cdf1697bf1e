// Package support is the command support-bundle: it collects what a report of a bug needs.
package support

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
)

// Command is stallspan support-bundle.
func Command() *cobra.Command {
	s := &support{now: time.Now()}
	cmd := &cobra.Command{
		Use:   "support-bundle [--output FILE] [--config FILE] [--log FILE]",
		Short: "Write what helps to find a problem with stallspan to one file, without secrets",
		Long: `Writes a compressed tar archive with the version, what check finds, the state of the agent, its config
without texts that may be secrets, the names of OTEL_* and STALLSPAN_* variables, the values of some others
(such as XDG_STATE_HOME and LD_PRELOAD), and facts of the kernel, the disks and the driver. Names of the
host, of disks and of GPUs are in it. Names, commands and data of programs are not.
It sends nothing. Look into the file before you send it.`,
		Example: `  stallspan support-bundle
  sudo stallspan support-bundle --config /etc/stallspan/agent.yaml
  journalctl -u stallspan | stallspan support-bundle --log -
  tar -xzOf stallspan-support-*.tar.gz | less`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.in = cmd.InOrStdin()
			path, err := s.write(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return output.Printed(err)
		},
	}
	cmd.Flags().StringVarP(&s.output, "output", "o", "", "write this `file` (default stallspan-support-TIME.tar.gz)")
	cmd.Flags().StringVar(&s.config, "config", "", "with the config `file` of the agent")
	cmd.Flags().StringVar(&s.log, "log", "", "with the agent's messages from this `file`; - is standard input")
	return cmd
}

// support collects the parts of a bundle.
type support struct {
	output, config, log string

	in     io.Reader
	now    time.Time
	redact redactor
}

// readme is the first file of a bundle.
const readme = `What stallspan support-bundle has collected on %s. Look at all of it before you send it.

version.txt      version of the program and the kernel
check.txt        what it can read on this machine (stallspan check)
status.json      state of the agent (GET /v1/status), or why it does not answer
config.yaml      the agent's config; REDACTED stands for each text that may be a secret
environment.txt  variables that change what it does: names of OTEL_* and STALLSPAN_*, values of others
machine.txt      settings of the kernel, disks and the NVIDIA driver
agent.log        messages of the agent, if they were given with --log
`

// write writes the bundle and returns its path.
func (s *support) write(ctx context.Context) (string, error) {
	if s.config != "" {
		if _, err := kernelOrUserFile(s.config); err != nil {
			return "", cli.Usagef("cannot read the config: %w", err)
		}
	}
	config, err := agentconfig.Read(s.config)
	broken := err // which is a reason to write a bundle
	if err != nil {
		config = agentconfig.Default()
	}
	files := []struct {
		name string
		make func() string
	}{
		// The config and the variables come first: their secrets are taken out of all others.
		{"config.yaml", func() string { return s.configFile(broken) }},
		{"environment.txt", s.environment},
		{"version.txt", func() string { return version.Describe() + "\n" + kernelFile("/proc/version") }},
		{"check.txt", func() string { return s.check(ctx, config) }},
		{"status.json", func() string { return s.status(ctx, config) }},
		{"machine.txt", machineFacts},
	}
	for _, a := range config.Actions {
		if a.Webhook != nil {
			s.redact.know(string(a.Webhook.Secret)) // which may come from a variable
		}
	}
	path := cmp.Or(s.output, "stallspan-support-"+s.now.UTC().Format("20060102-150405")+".tar.gz")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", cli.Usagef("--output %s is a folder: give a file in it", path)
	}
	b, err := createBundle(path)
	if err != nil {
		return "", fmt.Errorf("the bundle cannot be written, choose another file with --output: %w", err)
	}
	err = b.add("README.txt", fmt.Sprintf(readme, s.now.UTC().Format(time.RFC3339)))
	for _, f := range files {
		if err == nil {
			err = b.add(f.name, s.redact.text(f.make()))
		}
	}
	if err == nil && s.log != "" {
		var text string
		if text, err = s.messages(); err == nil {
			err = b.add("agent.log", s.redact.log(text))
		}
	}
	if err = cmp.Or(err, b.close()); err != nil {
		_ = b.file.Close()
		_ = os.Remove(path)
		return "", err
	}
	return path, nil
}

func (s *support) configFile(broken error) string {
	if s.config == "" {
		return "# none: see --config\n"
	}
	text, err := kernelOrUserFile(s.config)
	if err == nil {
		text, err = s.redact.yaml(text)
	}
	var out strings.Builder
	if broken != nil && err == nil { // an error can have a part of the file
		out.WriteString("# it is refused: run stallspan check --config " + s.config + "\n")
	}
	if err != nil {
		return fmt.Sprintf("# %v\n", err)
	}
	out.Write(text)
	return out.String()
}

// kernelOrUserFile reads a file, but not all of a large one.
func kernelOrUserFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, agentconfig.MaxSize))
}

// kernelFile is the text of a small file of /proc or /sys, or why it cannot be read.
func kernelFile(path string) string {
	text, err := kernelOrUserFile(path)
	if err != nil {
		return fmt.Sprintln(err)
	}
	return strings.TrimRight(string(text), "\n") + "\n"
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

func (s *support) check(ctx context.Context, config *agentconfig.Config) string {
	var out bytes.Buffer
	check.Draw(output.NewTable(&out), check.Run(ctx, config))
	return out.String()
}

func (s *support) status(ctx context.Context, config *agentconfig.Config) string {
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
	text, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		return fmt.Sprintln(err)
	}
	return string(text) + "\n"
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
func (s *support) messages() (string, error) {
	from := s.in
	if s.log != "-" {
		file, err := os.Open(s.log)
		if err != nil {
			return "", fmt.Errorf("--log: %w", err)
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", errors.New("--log: " + s.log + " is not a regular file")
		}
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, agentconfig.MaxSize))
	if err != nil {
		return "", fmt.Errorf("--log: %w", err)
	}
	return string(text), nil
}
