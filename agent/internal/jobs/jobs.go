// Package jobs is the command jobs: it lists the jobs of the GPUs, and where their time went.
package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// Command is stallspan jobs.
func Command() *cobra.Command {
	asJSON, running, from := false, false, time.Now().Add(-24*time.Hour)
	cmd := &cobra.Command{
		Use:   "jobs [--since TIME] [--running] [--json]",
		Short: "List the jobs of this machine's GPUs, and where their GPU hours went",
		Long: `Lists every process that holds memory of a GPU or uses CUDA, and those that did within the last day,
without any announcement, and programs that windows were announced for. The job that lost most comes
first.

held is the time for which a job held GPUs, summed over them. Busy, storage, CPU and other are shares of it:
the GPU worked; it was idle while the job waited for storage; while it used or waited for a CPU; for another
reason. Jobs that share a GPU get equal parts of its time. unused is the part of other in which a GPU did
nothing for five minutes or longer. best fix is the change that would give most.

The agent keeps these times in its history. A Collector with the receiver counts since it began.`,
		Example: `  stallspan jobs
  stallspan jobs --running --json | jq '.jobs[] | select(.storage > 3600) | .name'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			all, err := client.Jobs(cmd.Context(), from, time.Time{})
			if err != nil {
				return cli.Unanswered(client, err)
			}
			if all.Problem != "" {
				cli.Say("warning: %s", all.Problem)
			}
			if running {
				all.Jobs = slices.DeleteFunc(all.Jobs, func(j api.Job) bool { return !j.Running })
			}
			return output.Print(cmd.OutOrStdout(), asJSON, all, func(t *output.Table) { printJobs(t, all, from) })
		},
	}
	cli.PastFlag(cmd.Flags(), &from, "since", "count from this `time` on (default 24h)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON, in seconds")
	cmd.Flags().BoolVar(&running, "running", false, "leave out jobs that have ended")
	return cmd
}

// printJobs prints a line for each job, and one for each GPU that no process held for a while.
func printJobs(t *output.Table, all *api.Jobs, from time.Time) {
	if len(all.Jobs) == 0 {
		t.Line("No job has held memory of a GPU in this time.")
	} else {
		printJob(t, "job", "user or pod", "GPUs", "held", "busy", "storage", "CPU", "other", "unused", "best fix")
	}
	slices.SortStableFunc(all.Jobs, func(a, b api.Job) int { return cmp.Compare(b.Lost(), a.Lost()) })
	named := map[string]int{} // how many jobs have a name
	for i := range all.Jobs {
		named[window.ShownName(all.Jobs[i].Name)]++
	}
	for i := range all.Jobs {
		j := &all.Jobs[i]
		name, fix := window.ShownName(j.Name), "-"
		if named[name] > 1 && j.PID > 0 {
			name += " " + strconv.Itoa(j.PID)
		}
		if !j.Running {
			name += ", ended"
		}
		if j.Fix != nil {
			fix = j.Fix.Says
		}
		busy, gpus := "-", "-" // without a GPU, its own time is divided
		if len(j.GPUs) > 0 {
			busy, gpus = share(j.Busy, j), strconv.Itoa(len(j.GPUs))
		}
		printJob(t, name, cmp.Or(j.Attributes["k8s.pod.name"], j.User), gpus, hours(j.Allocated), busy, share(j.Storage, j),
			share(j.CPU, j), share(j.Other, j), share(j.Unused, j), fix)
	}
	for _, g := range all.GPUs {
		if g.Idle >= time.Minute.Seconds() {
			t.Line(fmt.Sprintf("%s: held by no process for %s.", g.ID, hours(g.Idle)))
		}
	}
	if all.Since.Sub(from) > time.Minute {
		t.Line("Counted since " + all.Since.Local().Format(time.DateTime) + ": nothing is known of the time before.")
	}
}

func printJob(t *output.Table, name, owner, gpus, held, busy, storage, cpu, other, unused, fix string) {
	const nameWidth, ownerWidth = 22, 12
	t.Line(fmt.Sprintf("%s %s %4s %7s %5s %7s %5s %5s %6s  %s", output.Fit(name, nameWidth), output.Fit(owner,
		ownerWidth), gpus, held,
		busy, storage, cpu, other, unused, fix))
}

// hours prints seconds of one GPU or of several.
func hours(seconds float64) string {
	switch {
	case seconds < 99.5:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 99.5*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 99.5*3600:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f h", seconds/3600)
}

// share prints a part of a job's time.
func share(part float64, j *api.Job) string {
	if total := j.Sum(); total > 0 {
		return fmt.Sprintf("%.0f %%", 100*part/total)
	}
	return "-"
}
