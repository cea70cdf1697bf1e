// Package list is the command list: the windows that are open or have ended recently.
package list

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/history"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/runs"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
)

// defaultListed is how many of the windows that have ended ls prints.
const defaultListed = 20

// Command is stallspan ls.
func Command() *cobra.Command {
	asJSON, last, id := false, defaultListed, ""
	var since time.Time
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the windows of this machine: open ones, and those of the last hour",
		Long: `Lists the windows that programs have announced to the agent, or to a Collector with the receiver, those
that these have detected, and those of your programs under stallspan run. Open ones have their ledger so
far. Those of a followed job name it. With STALLSPAN_SOCKET it lists those of that socket alone.

--since also lists those that an agent has kept in its history.`,
		Example: `  stallspan ls
  stallspan ls --since 3d --last 100
  stallspan mark end "$(stallspan ls --json | jq -r '.running[0].id')"`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return cli.Usagef("--last %d: give 0 or more", last)
			}
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			all, err := listAll(cmd.Context(), client, since)
			if err != nil {
				return err
			}
			if id != "" {
				return writeWindow(cmd.OutOrStdout(), all, id, asJSON)
			}
			return output.Print(cmd.OutOrStdout(), asJSON, all, func(t *output.Table) {
				printWindows(t, all, last)
				printReleased(cmd.Context(), t, client)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all reports as JSON")
	cmd.Flags().StringVar(&id, "id", "", "the `window` to print alone, with its finding, as mark end does")
	cli.PastFlag(cmd.Flags(), &since, "since", "list windows that ended after this `time`, also those of the history")
	cmd.Flags().IntVar(&last, "last", last, "`number` of windows that have ended, the newest ones")
	return cmd
}

// Bounds of the programs under run that ls asks, and of the windows that it takes from the history.
const (
	maxRuns = 64
	maxKept = 10_000
)

// listAll lists the windows of the agent, and of each run of this user. Without an agent, the runs are enough, or its
// history where one is asked for: from is then not zero.
func listAll(ctx context.Context, client *api.Client, from time.Time) (api.Listing, error) {
	all, failed := client.Windows(ctx)
	if failed != nil {
		all, failed = api.Listing{Running: []*explain.Report{}, Ended: []*explain.Report{}}, cli.Unanswered(client, failed)
	}
	answered := 0
	for _, socket := range runs.Sockets() {
		if answered == maxRuns || os.Getenv(api.SocketVariable) != "" {
			break
		}
		one, err := api.NewClient(socket).Windows(ctx)
		if err != nil {
			continue // it belongs to another user, or has just ended
		}
		answered++
		all.Running = append(all.Running, one.Running...)
		all.Ended = append(all.Ended, one.Ended...)
	}
	if answered > 0 {
		failed = nil
	}
	if !from.IsZero() {
		var kept []*explain.Report
		kept, failed = history.Windows(ctx, from, maxKept, func(*explain.Report) bool { return true })
		all.Ended = append(all.Ended, kept...)
	}
	known := map[string]bool{} // the agent has those that a run has reported
	all.Ended = slices.DeleteFunc(all.Ended, func(r *explain.Report) bool {
		twice := known[r.ID]
		known[r.ID] = true
		return twice || r.End.Before(from)
	})
	return all, failed
}

// writeWindow writes what is known of one window: its report, or its finding and what to try.
func writeWindow(out io.Writer, all api.Listing, id string, asJSON bool) error {
	both := slices.Concat(all.Running, all.Ended)
	i := slices.IndexFunc(both, func(r *explain.Report) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("no window is open or has ended in the last hour with the id %q: stallspan ls lists the ids, "+
			"with --since older ones", id)
	}
	if asJSON {
		return output.WriteJSON(out, both[i])
	}
	lines := reports.EndedLine(both[i])
	if remedy := both[i].Remedy; remedy != "" {
		lines += "\nTry: " + output.Printable(remedy)
	}
	_, err := fmt.Fprintln(out, lines)
	return err
}

// printReleased says which GPUs are not read because the agent has let go of them.
func printReleased(ctx context.Context, t *output.Table, client *api.Client) {
	status, _ := client.Status(ctx) // without an agent, nothing is released
	for _, g := range status.GPUs {
		if g.Status == string(sample.GPUReleased) {
			t.Text("", output.Printable(g.ID)+" is released: it is read again later, or after stallspan agent release-gpus "+
				"--for 0s.")
		}
	}
}

func place(r *explain.Report) explain.Place {
	return explain.Place{ID: r.ID, Within: r.Within, Start: time.Duration(r.Start.UnixNano()),
		Length: time.Duration(r.Duration * float64(time.Second))}
}

func printWindows(t *output.Table, all api.Listing, last int) {
	if len(all.Running)+len(all.Ended) == 0 {
		t.Text("", "No windows are open, and none has ended in the last hour, or since the agent or Collector began. "+
			"With --since 7d, ls lists what an agent has kept.")
		return
	}
	reports.ListHead(t)
	explain.InOrder(all.Running, place)
	for _, r := range all.Running {
		reports.ListRow(t, r, "open, ")
	}
	left := max(0, len(all.Ended)-last)
	if left > 0 {
		t.Line(fmt.Sprintf("... %d earlier, see --last ...", left))
	}
	explain.InOrder(all.Ended, place)
	const layout = "Mon 2 Jan"
	today := time.Now().Format(layout)
	for _, r := range all.Ended[left:] {
		if day := r.Start.Local().Format(layout); day != today {
			t.Line(day)
			today = day
		}
		reports.ListRow(t, r, "")
	}
}
