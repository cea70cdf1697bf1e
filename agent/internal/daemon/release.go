package daemon

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
)

// releaseCommand is stallspan agent release-gpus.
func releaseCommand() *cobra.Command {
	length := api.ReleasedFor
	cmd := &cobra.Command{
		Use:   "release-gpus",
		Short: "Make the agent close all files of the GPUs' driver for a time",
		Long: `Makes the agent close all files of the GPUs' driver, and returns once they are closed. Nothing is read
of GPUs meanwhile. Then the driver can be unloaded, a GPU be reset and MIG be changed.`,
		Example: `  stallspan agent release-gpus --for 5m && nvidia-smi --gpu-reset
  stallspan agent release-gpus --for 0s`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if length < 0 || length > api.MaxReleased {
				return cli.Usagef("--for %v: give 0s to %v", length, api.MaxReleased)
			}
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			if err := client.ReleaseGPUs(cmd.Context(), length); err != nil {
				return cli.Unanswered(client, err)
			}
			said := "The driver of GPUs is read again."
			if length > 0 {
				until := time.Now().Add(length).Format(time.TimeOnly)
				said = fmt.Sprintf("No file of the GPUs' driver is open until %s: --for 0s ends that now.", until)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			return err
		},
	}
	cmd.Flags().DurationVar(&length, "for", length, "how long: this `duration`; 0s reads GPUs again now")
	return cmd
}
