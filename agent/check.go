package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/internal/api"
)

func checkCommand() *cobra.Command {
	var asJSON bool
	var config string
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--json]",
		Short: "Say what can be seen on this machine, what cannot, and what would change that",
		Long: `Tries everything that stallspan needs: GPUs, disks and their health, pressure, cgroups, processes, the agent's socket and the OTLP
backend. It says what was found, and for each thing that is lacking the one line that would change it. It takes at most
three seconds, sends nothing and leaves nothing behind.`,
		Example: `  stallspan check
  sudo stallspan check --config /etc/stallspan.yaml
  stallspan check --json | jq '.findings[] | select(.fix)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(config)
			if err != nil {
				return failure{exitUsage, err}
			}
			found := checkMachine(cmd.Context(), c)
			write := printCheck
			if asJSON {
				write = printCheckJSON
			}
			if err := write(cmd.OutOrStdout(), found); err != nil {
				return failure{exitFailed, err}
			}
			if !check.Essential(found) {
				return exit(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "look as an agent with this config `file` would (docs/agent.md)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	return cmd
}

// checkMachine looks with the eyes of an agent that has this config.
func checkMachine(ctx context.Context, c *config) []check.Finding {
	monitored, _ := c.monitor()
	o := check.Options{Root: monitored.Root, NVML: monitored.NVML, Socket: api.DefaultSocket()}
	if monitored.Drives != nil {
		o.Drives = &monitored.Drives.Ask
	}
	if os.Getenv(api.SocketVariable) == "" {
		o.Socket = cmp.Or(c.Socket, o.Socket)
	}
	if path, err := os.Executable(); err == nil {
		o.Program = path
	}
	var targets []export.Target
	targets, o.ExportError = export.Targets()
	for _, t := range targets {
		o.Export = append(o.Export, check.Target(t))
	}
	return check.Machine(ctx, o)
}

// checkReport is what check --json prints.
type checkReport struct {
	Summary   string          `json:"summary"`
	Essential bool            `json:"essential"` // there is enough to tell what a program waits for
	Findings  []check.Finding `json:"findings"`
}

func printCheckJSON(out io.Writer, found []check.Finding) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(checkReport{check.Summary(found), check.Essential(found), found})
}
