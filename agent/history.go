package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/buckets"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/nearest"
	"github.com/stallspan/stallspan/internal/store"
)

// historyOptions are the flags of history.
type historyOptions struct {
	since, until string
	series       []string
	step         time.Duration
	csv, json    bool
	folder       string
}

// historySeries are the values of --series.
var historySeries = []string{string(store.Machine), string(store.GPU), string(store.Disk), string(store.Job),
	store.Window.String(), store.Event.String()}

func historyCommand() *cobra.Command {
	o := historyOptions{since: "2h"}
	cmd := &cobra.Command{
		Use:   "history [--since TIME] [--until TIME] [--series LIST] [--csv|--json]",
		Short: "Show what this machine did in the last week: curves, windows and events",
		Long: `Shows the past that the agent keeps: GPUs, disks, pressure, windows with their findings, and events.
It asks the agent, or reads its files where none runs. TIME is an age such as 2h or 3d, a time of day, or
a date with a time.`,
		Example: `  stallspan history --since 12h
  stallspan history --since 02:00 --until 04:00 --series gpu,disk
  stallspan history --since 7d --csv --step 1m > week.csv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.prepare(time.Now())
			if err != nil {
				return usage(err)
			}
			h.out = cmd.OutOrStdout()
			return h.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.since, "since", o.since,
		"begin at this `time`: an age such as 2h or 3d, 14:05, or 2026-11-23T14:05")
	flags.StringVar(&o.until, "until", "", "end at this `time` (default now)")
	flags.StringSliceVar(&o.series, "series", nil, "show only these: "+strings.Join(historySeries, ", "))
	durationFlag(flags, &o.step, "step",
		"`length` of the intervals, 10s or longer (default: 10s, or what the table has room for)")
	flags.BoolVar(&o.csv, "csv", false, "print one line for each device and interval, after a header, without windows")
	flags.BoolVar(&o.json, "json", false, "print one JSON object for each device and interval, window and event")
	flags.StringVar(&o.folder, "dir", "", "read the files in this `folder`, and do not ask the agent")
	return cmd
}

// storedStep is the length of stored intervals.
const storedStep = 10 * time.Second

// maxStep bounds --step: buckets begin at multiples of it.
const maxStep = 7 * 24 * time.Hour

// prepare checks the command line. Its errors concern that.
func (o *historyOptions) prepare(now time.Time) (*historyRun, error) {
	h := &historyRun{now: now, folder: o.folder, step: o.step, show: map[string]bool{}}
	if o.csv && o.json {
		return nil, errors.New("--csv and --json: choose one of them")
	}
	var err error
	if h.from, err = parsePast("--since", o.since, now); err != nil {
		return nil, err
	}
	h.until = now
	if o.until != "" {
		if h.until, err = parsePast("--until", o.until, now); err != nil {
			return nil, err
		}
	}
	if !h.from.Before(h.until) {
		return nil, fmt.Errorf("--since %s is not before --until %s", h.from.Format(time.DateTime),
			h.until.Format(time.DateTime))
	}
	if h.step != 0 && (h.step < storedStep || h.step > maxStep || h.step%storedStep != 0) {
		return nil, fmt.Errorf("--step %v: choose a multiple of %v, up to %v", o.step, storedStep, maxStep)
	}
	for _, name := range o.series {
		if !slices.Contains(historySeries, name) {
			if near := nearest.Word(name, historySeries); near != "" {
				return nil, fmt.Errorf("--series %q: did you mean %s?", name, near)
			}
			return nil, fmt.Errorf("--series %q: choose from %s", name, strings.Join(historySeries, ", "))
		}
		h.show[name] = true
	}
	switch {
	case o.csv:
		h.writer = &historyCSV{run: h}
	case o.json:
		h.writer = &historyJSON{run: h}
	default:
		if h.step == 0 {
			h.step = tableStep(h.until.Sub(h.from))
		}
		h.writer = &historyTable{run: h}
	}
	if h.step == 0 {
		h.step = storedStep
	}
	h.from = h.from.Truncate(h.step) // whole intervals
	return h, nil
}

// parsePast parses a moment of the past: an age, a time of day or a date.
func parsePast(flag, text string, now time.Time) (time.Time, error) {
	number, isDays := strings.CutSuffix(text, "d")
	if age, err := parseDuration(number); err == nil && !strings.ContainsAny(number, ":") {
		if isDays && !strings.ContainsAny(number, "hms") {
			age = time.Duration(age.Seconds() * float64(24*time.Hour)) // a bare number counts as seconds
		} else if isDays {
			age = -1
		}
		if age >= 0 && age < 100*365*24*time.Hour {
			return now.Add(-age), nil
		}
	}
	m, err := parseMoment(flag, text)
	if err != nil || m.time.IsZero() {
		return now, fmt.Errorf("%s %q: give an age such as 2h or 3d, 14:05, or 2026-11-23T14:05", flag, text)
	}
	if !m.clock {
		return m.time, nil
	}
	day := now.Local()
	at := time.Date(day.Year(), day.Month(), day.Day(), m.time.Hour(), m.time.Minute(), m.time.Second(), 0, time.Local)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at, nil
}

// historyRun shows the past between two times.
type historyRun struct {
	out         io.Writer
	now         time.Time
	from, until time.Time
	step        time.Duration
	folder      string          // "" for the agent
	show        map[string]bool // empty for everything
	writer      historyWriter
	damaged     int
	later       int  // blocks of a later version
	agent       bool // an agent has answered
}

// historyWriter is a form of the output.
type historyWriter interface {
	bucket(to *bytes.Buffer, b *buckets.Bucket) error
	end(h *historyRun) error
}

func (h *historyRun) shows(what string) bool { return len(h.show) == 0 || h.show[what] }

func (h *historyRun) run(ctx context.Context) error {
	m := buckets.New(h.step, func(b *buckets.Bucket) error {
		var text bytes.Buffer
		b.Devices = slices.DeleteFunc(b.Devices, func(d *buckets.Device) bool { return !h.shows(string(d.Of)) })
		b.Entries = slices.DeleteFunc(b.Entries, func(e store.Entry) bool { return !h.shows(e.Kind.String()) })
		if err := h.writer.bucket(&text, b); err != nil {
			return err
		}
		_, err := h.out.Write(text.Bytes())
		return printed(err)
	})
	files, err := h.read(ctx, m)
	if files && err == nil {
		say("no agent answers: this is what its files hold")
	}
	if err == nil {
		err = m.Close()
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil // as after "| head"
	}
	if err != nil {
		return err
	}
	if h.damaged > 0 {
		say("warning: %d places of the history are damaged and left out", h.damaged)
	}
	if h.later > 0 {
		say("warning: %d parts of the history are not shown: a later version of stallspan wrote them", h.later)
	}
	return h.writer.end(h)
}

// read passes the past to m: from the agent, or from its files where none answers, which it reports.
func (h *historyRun) read(ctx context.Context, m *buckets.Maker) (files bool, err error) {
	if h.folder != "" {
		return false, h.files(ctx, h.folder, m)
	}
	client, err := api.FromEnvironment()
	if err != nil {
		return false, usage(err)
	}
	body, failed := client.History(ctx, h.from, h.until)
	if failed == nil {
		h.agent = true
		defer func() { _ = body.Close() }()
		if err := h.blocks(ctx, body, m); err != nil {
			return false, fmt.Errorf("the history from the agent at %s: %w", client.Server(), err)
		}
		return false, nil
	}
	folder := defaultAgentConfig().historyFolder()
	if refused := new(api.Error); errors.As(failed, &refused) || folder == "" {
		return false, failed
	}
	if err := h.files(ctx, folder, m); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w; and there is no history in %s", unanswered(client, failed), folder)
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// files reads the files of a folder.
func (h *historyRun) files(ctx context.Context, folder string, m *buckets.Maker) error {
	if all, err := store.Files(folder); err == nil && len(all) == 0 && folder == h.folder {
		return fmt.Errorf("%s has no history files: give --dir the folder history of an agent's state", folder)
	}
	err := store.Each(folder, h.from, h.until, func(path string, file io.Reader) error {
		if err := h.blocks(ctx, file, m); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && folder == h.folder:
		return fmt.Errorf("there is no folder %s: give --dir the folder history of an agent's state", folder)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the history in %s is for its owner: run this as that user or as root, or start the agent, "+
			"and it answers you", folder)
	}
	return err
}

func (h *historyRun) blocks(ctx context.Context, in io.Reader, m *buckets.Maker) error {
	r := store.NewReader(in)
	r.From, r.Until = h.from, h.until
	defer func() { h.damaged, h.later = h.damaged+r.Damaged(), h.later+r.Later() }()
	for {
		item, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return exitError{exitInterrupted, errors.New("interrupted")}
		case err != nil:
			return err
		}
		if err := m.Add(&item, h.from, h.until); err != nil {
			return err
		}
	}
}
