// Package page is the command page: it serves the page of an agent to a browser.
package page

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
)

// Command is stallspan page.
func Command() *cobra.Command {
	listen := "127.0.0.1:0"
	cmd := &cobra.Command{
		Use:   "page [--listen PORT]",
		Short: "Show this machine in a browser: curves and your windows, live",
		Long: `Serves the agent's page to your browser until you stop it, and prints its address. The page shows
the machine's GPUs, disks, pressure and cores, and the windows that you may see: your own, or all as
root. It reads the socket of the agent, or of the Collector with the receiver; within a program under
stallspan run, that of the run.

The address holds a key, because every user of a machine reaches its ports. From another machine, use
ssh -L 8080:127.0.0.1:8080 and stallspan page --listen 8080.`,
		Example: `  stallspan page
  stallspan page --listen 8080`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			if _, err := api.Endpoint(listen); err != nil {
				return cli.Usage(fmt.Errorf("--listen %q is not a port: give 8080, or 0 for any", listen))
			}
			if _, err := client.Status(cmd.Context()); err != nil {
				return cli.Unanswered(client, err)
			}
			l, err := api.ListenLoopback(listen)
			if err != nil {
				return err
			}
			bridge := api.NewBridge(client)
			if _, err := cmd.OutOrStdout().Write([]byte(bridge.Address(l) + "\n")); err != nil {
				_ = l.Close()
				return err
			}
			cli.Say("the page is there until this command ends: Ctrl-C")
			return bridge.Serve(cmd.Context(), l)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "serve on this `port` of this machine; 0 for any")
	return cmd
}
