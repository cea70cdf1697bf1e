package check

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/source/bpf"
)

// Command is stallspan check.
func Command() *cobra.Command {
	var asJSON bool
	s := &support{}
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--json | --bundle FILE]",
		Short: "Show what stallspan can read on this machine, and how to fix the rest",
		Long: `Tries everything that stallspan uses: GPUs, disks and their health, pressure, cgroups, processes,
the agent's socket and the OTLP backend. Prints the result of each, and one line that would fix it.
It takes at most three seconds, sends nothing and leaves nothing behind.

--bundle writes what helps to find a problem with stallspan: a compressed tar archive with the version, what
check finds, the state of the agent, its config without texts that may be secrets, the names of OTEL_* and
STALLSPAN_* variables, the values of some others (such as XDG_STATE_HOME and LD_PRELOAD), and facts of the
kernel, the disks and the driver. Names of the host, of disks and of GPUs are in it. Names, commands and data
of programs are not. Look into the file before you send it.`,
		Example: `  stallspan check
  sudo stallspan check --config /etc/stallspan/agent.yaml
  stallspan check --json | jq '.findings[] | select(.fix)'
  journalctl -u stallspan | stallspan check --bundle support.tar.gz --log -`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("bundle") {
				return s.write(cmd)
			}
			if s.log != "" {
				return cli.Usagef("--log is for a bundle: give --bundle FILE, too")
			}
			c, err := agentconfig.Read(s.config)
			if err != nil {
				return cli.Usage(err)
			}
			found := run(cmd.Context(), c)
			err = output.Print(cmd.OutOrStdout(), asJSON, Report{Summary(found), Essential(found), found},
				func(t *output.Table) { draw(t, found) })
			if err == nil && !Essential(found) {
				return cli.ExitError{Code: cli.ExitFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	cmd.Flags().StringVar(&s.path, "bundle", "", "write what a report of a problem needs to this `file`")
	s.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("json", "bundle")
	return cmd
}

// run checks the machine for an agent with this config.
func run(ctx context.Context, c *agentconfig.Config) []Finding {
	monitored := c.Monitor()
	o := Options{Root: monitored.Root, NVML: monitored.NVML, Socket: api.ClientSocket(),
		Refusals: bpf.Supported}
	if monitored.Drives != nil {
		o.Drives = &monitored.Drives.Ask
	}
	if os.Getenv(api.SocketVariable) == "" {
		o.Socket = cmp.Or(c.Socket, o.Socket)
	}
	o.Export, o.ExportError = export.Targets()
	return Machine(ctx, o)
}

// Report is the output of check --json.
type Report struct {
	Summary   string    `json:"summary"`
	Essential bool      `json:"essential"` // enough can be read to find what a program waits for
	Findings  []Finding `json:"findings"`
}

// stateColors are the colours of check's states.
var stateColors = map[State]output.Color{Seen: output.Good, Limited: output.Warn,
	Missing: output.Bad}

// draw writes a line or two for each finding: its state, its area and its meaning. A fix stays on one line,
// however long it is, so that it can be copied.
func draw(t *output.Table, found []Finding) {
	for _, f := range found {
		t.Colored(stateColors[f.State], fmt.Sprintf("%-7s %-9s ", f.State, f.Area), f.Message)
		if f.Fix != "" {
			t.Line("        fix: " + f.Fix)
		}
	}
	t.Line("")
	t.Text("", Summary(found))
}
