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
	var config string
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--json]",
		Short: "Show what stallspan can read on this machine, and how to fix the rest",
		Long: `Tries everything that stallspan uses: GPUs, disks and their health, pressure, cgroups, processes,
the agent's socket and the OTLP backend. Prints the result of each, and one line that would fix it.
It takes at most three seconds, sends nothing and leaves nothing behind.`,
		Example: `  stallspan check
  sudo stallspan check --config /etc/stallspan/agent.yaml
  stallspan check --json | jq '.findings[] | select(.fix)'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := agentconfig.Read(config)
			if err != nil {
				return cli.Usage(err)
			}
			found := Run(cmd.Context(), c)
			err = output.Print(cmd.OutOrStdout(), asJSON, Report{Summary(found), Essential(found), found},
				func(t *output.Table) { Draw(t, found) })
			if err == nil && !Essential(found) {
				return cli.ExitError{Code: cli.ExitFailed}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "check for an agent with this config `file` (stallspan docs agent)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	return cmd
}

// Run checks the machine for an agent with this config.
func Run(ctx context.Context, c *agentconfig.Config) []Finding {
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

// Draw writes a line or two for each finding: its state, its area and its meaning. A fix stays on one line,
// however long it is, so that it can be copied.
func Draw(t *output.Table, found []Finding) {
	for _, f := range found {
		t.Colored(stateColors[f.State], fmt.Sprintf("%-7s %-9s ", f.State, f.Area), f.Message)
		if f.Fix != "" {
			t.Line("        fix: " + f.Fix)
		}
	}
	t.Line("")
	t.Text("", Summary(found))
}
