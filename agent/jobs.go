package agent

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/api"
)

func jobsCommand() *cobra.Command {
	asJSON, asCSV, running := false, false, false
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of this machine's GPUs, and where their GPU hours went",
		Long: `Lists every process that holds memory of a GPU, and those that did within the last day, without any
announcement. Each has the hours for which it held GPUs, and what became of them.
The agent, or a Collector with the receiver, counts since it began.`,
		Example: `  stallspan jobs
  stallspan jobs --running --json | jq '.jobs[] | select(.storage > 3600) | .name'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && asCSV {
				return usagef("--json and --csv: give one of them")
			}
			client, err := api.FromEnvironment()
			if err != nil {
				return usage(err)
			}
			all, err := client.Jobs(cmd.Context())
			if err != nil {
				return unanswered(client, err)
			}
			if running {
				all.Jobs = slices.DeleteFunc(all.Jobs, func(j api.Job) bool { return !j.Running })
			}
			switch {
			case asJSON:
				return writeJSON(cmd.OutOrStdout(), all)
			case asCSV:
				return jobsCSV(cmd.OutOrStdout(), all)
			}
			return writeTable(cmd.OutOrStdout(), func(t *table) { t.jobs(all) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON, in seconds")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print a line for each job and GPU, in seconds")
	cmd.Flags().BoolVar(&running, "running", false, "leave out jobs that have ended")
	return cmd
}

// jobs prints a line for each job, and one for each GPU that no process held for a while.
func (t *table) jobs(all *api.Jobs) {
	if len(all.Jobs) == 0 {
		t.line("No job has held memory of a GPU within the last day.")
	} else {
		t.jobRow("job", "user", "GPUs", "held", "busy", "storage", "CPU", "other", "with instant storage")
	}
	for i := range all.Jobs {
		j := &all.Jobs[i]
		name := j.Name
		if !j.Running {
			name += ", ended"
		}
		t.jobRow(name, j.User, gpuCount(j), hours(j.Allocated), share(j.Busy, j), share(j.Storage, j),
			share(j.CPU, j), share(j.Other, j), faster(j))
	}
	for _, g := range all.GPUs {
		if g.Idle >= time.Minute.Seconds() {
			t.line(fmt.Sprintf("%s: held by no process for %s.", g.ID, hours(g.Idle)))
		}
	}
}

func (t *table) jobRow(name, user, gpus, held, busy, storage, cpu, other, gain string) {
	const nameWidth, userWidth = 22, 8
	t.line(fmt.Sprintf("%s %s %4s %7s %5s %7s %5s %5s  %s", fit(name, nameWidth), fit(user, userWidth), gpus, held, busy,
		storage, cpu, other, gain))
}

// gpuCount is how many GPUs a job has held; "-" for one without.
func gpuCount(j *api.Job) string {
	if len(j.GPUs) == 0 {
		return "-"
	}
	return strconv.Itoa(len(j.GPUs))
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

// divided is the time of a job that its causes add up to: less than the allocated time where it shared a GPU.
func divided(j *api.Job) float64 { return j.Busy + j.Storage + j.CPU + j.Other }

// share prints a part of a job's time. Without a GPU, busy is not known.
func share(part float64, j *api.Job) string {
	if total := divided(j); total > 0 {
		return fmt.Sprintf("%.0f %%", 100*part/total)
	}
	return "-"
}

// faster prints by how much instant storage would have sped a job up.
func faster(j *api.Job) string {
	total := divided(j)
	if total <= 0 || j.Gain/total < 0.01 {
		return "the same"
	}
	return fmt.Sprintf("%.2gx", total/max(total-j.Gain, total/100))
}

// jobsCSV prints a line for each job and GPU.
func jobsCSV(out io.Writer, all *api.Jobs) error {
	w := csv.NewWriter(out)
	_ = w.Write(strings.Fields("job name user pid running began until gpu shared " +
		"allocated_s busy_s storage_s cpu_s other_s gain_s"))
	for i := range all.Jobs {
		j := &all.Jobs[i]
		on := j.GPUs
		if len(on) == 0 {
			on = []api.JobGPU{{JobTime: j.JobTime}}
		}
		for _, g := range on {
			row := []string{j.ID, j.Name, j.User, strconv.Itoa(j.PID), strconv.FormatBool(j.Running),
				j.Began.UTC().Format(time.RFC3339Nano), j.Until.UTC().Format(time.RFC3339Nano), g.ID,
				strconv.FormatBool(g.Shared)}
			for _, v := range []float64{g.Allocated, g.Busy, g.Storage, g.CPU, g.Other, g.Gain} {
				row = append(row, strconv.FormatFloat(v, 'f', 3, 64))
			}
			_ = w.Write(row) // w keeps the first error
		}
	}
	w.Flush()
	return w.Error()
}
