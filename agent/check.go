package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/console"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/source/schedule"
	"github.com/stallspan/stallspan/internal/source/switches"
)

func checkCommand() *cobra.Command {
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(config)
			if err != nil {
				return usage(err)
			}
			found := checkMachine(cmd.Context(), c)
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), checkReport{check.Summary(found), check.Essential(found), found})
			} else {
				err = printCheck(cmd.OutOrStdout(), found)
			}
			if err == nil && !check.Essential(found) {
				return exitError{code: exitFailed}
			}
			return printed(err)
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "check for an agent with this config `file` (stallspan docs agent)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	return cmd
}

// checkMachine checks the machine for an agent with this config.
func checkMachine(ctx context.Context, c *agentConfig) []check.Finding {
	monitored := c.monitor()
	o := check.Options{Root: monitored.Root, NVML: monitored.NVML, Socket: api.ClientSocket(),
		Schedule: schedule.Supported, Switches: switches.Supported, Latency: latency.Supported, Opens: opens.Supported}
	if monitored.Drives != nil {
		o.Drives = &monitored.Drives.Ask
	}
	if os.Getenv(api.SocketVariable) == "" {
		o.Socket = cmp.Or(c.Socket, o.Socket)
	}
	var targets []export.Target
	targets, o.ExportError = export.Targets()
	for _, t := range targets {
		o.Export = append(o.Export, check.Target(t))
	}
	return check.Machine(ctx, o)
}

// checkReport is the output of check --json.
type checkReport struct {
	Summary   string          `json:"summary"`
	Essential bool            `json:"essential"` // enough can be read to find what a program waits for
	Findings  []check.Finding `json:"findings"`
}

// stateColors are the colours of check's states.
var stateColors = map[check.State]console.Color{check.Seen: console.Good, check.Limited: console.Warn,
	check.Missing: console.Bad}

// printCheck writes a line or two for each finding: its state, its area and its meaning. A fix stays on one line,
// however long it is, so that it can be copied.
func printCheck(out io.Writer, found []check.Finding) error {
	return writeTable(out, func(t *table) {
		for _, f := range found {
			t.colored(stateColors[f.State], fmt.Sprintf("%-7s %-9s ", f.State, f.Area), f.Message)
			if f.Fix != "" {
				t.line("        fix: " + f.Fix)
			}
		}
		t.line("")
		t.text("", check.Summary(found))
	})
}
