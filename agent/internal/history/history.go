// Package history is the command history: it shows what an agent has kept of the last week.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/store"
)

// options are the flags of history.
type options struct {
	since, until time.Time
	series       []string
	step         time.Duration
	json         bool
	folder       string
}

// Series are the values of --series.
var Series = []string{string(store.Machine), string(store.GPU), string(store.Disk), string(store.Job),
	store.Window.String(), store.Event.String()}

// Command is stallspan history.
func Command() *cobra.Command {
	now := time.Now()
	o := options{since: now.Add(-2 * time.Hour), until: now}
	cmd := &cobra.Command{
		Use:   "history [--since TIME] [--until TIME] [--series LIST] [--json]",
		Short: "Show what this machine did in the last week: curves, windows and events",
		Long: `Shows the past that the agent keeps: GPUs, disks, pressure, windows with their findings, and events.
It asks the agent, or reads its files where none runs. TIME is an age such as 2h or 3d, a time of day, or
a date with a time.`,
		Example: `  stallspan history --since 12h
  stallspan history --since 02:00 --until 04:00 --series gpu,disk
  stallspan history --since 7d --json --step 1m > week.jsonl`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.prepare()
			if err != nil {
				return cli.Usage(err)
			}
			h.out = cmd.OutOrStdout()
			return h.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	cli.PastFlag(flags, &o.since, "since", "begin at this `time` (default 2h)")
	cli.PastFlag(flags, &o.until, "until", "end at this `time` (default now)")
	flags.StringSliceVar(&o.series, "series", nil, "show only these: "+strings.Join(Series, ", "))
	cli.DurationFlag(flags, &o.step, "step",
		"`length` of the intervals, 10s or longer (default: 10s, or what the table has room for)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object for each device and interval, window and event")
	flags.StringVar(&o.folder, "dir", "", "read the files in this `folder`, and do not ask the agent")
	return cmd
}

// storedStep is the length of stored intervals.
const storedStep = 10 * time.Second

// maxStep bounds --step: buckets begin at multiples of it.
const maxStep = 7 * 24 * time.Hour

// prepare checks the command line. Its errors concern that.
func (o *options) prepare() (*Run, error) {
	h := &Run{From: o.since, Until: o.until, folder: o.folder, step: o.step, show: map[string]bool{}}
	if !h.From.Before(h.Until) {
		return nil, fmt.Errorf("--since %s is not before --until %s", h.From.Format(time.DateTime),
			h.Until.Format(time.DateTime))
	}
	if h.step != 0 && (h.step < storedStep || h.step > maxStep || h.step%storedStep != 0) {
		return nil, fmt.Errorf("--step %v: choose a multiple of %v, up to %v", o.step, storedStep, maxStep)
	}
	for _, name := range o.series {
		if !slices.Contains(Series, name) {
			if near := config.Nearest(name, Series); near != "" {
				return nil, fmt.Errorf("--series %q: did you mean %s?", name, near)
			}
			return nil, fmt.Errorf("--series %q: choose from %s", name, strings.Join(Series, ", "))
		}
		h.show[name] = true
	}
	if o.json {
		h.writer = jsonLines{}
	} else {
		if h.step == 0 {
			h.step = tableStep(h.Until.Sub(h.From))
		}
		h.writer = &table{run: h, seen: map[store.Kind]bool{}}
	}
	if h.step == 0 {
		h.step = storedStep
	}
	h.From = h.From.Truncate(h.step) // whole intervals
	return h, nil
}

// Run shows the past between two times.
type Run struct {
	out         io.Writer
	From, Until time.Time
	step        time.Duration
	folder      string          // "" for the agent
	show        map[string]bool // empty for everything
	writer      writer
	damaged     int
	later       int  // blocks of a later version
	agent       bool // an agent has answered
}

// writer is a form of the output.
type writer interface {
	bucket(to *bytes.Buffer, b *Bucket) error
	end(h *Run) error
}

func (h *Run) shows(what string) bool { return len(h.show) == 0 || h.show[what] }

func (h *Run) run(ctx context.Context) error {
	m := NewMaker(h.step, func(b *Bucket) error {
		var text bytes.Buffer
		b.Devices = slices.DeleteFunc(b.Devices, func(d *Device) bool { return !h.shows(string(d.Of)) })
		b.Entries = slices.DeleteFunc(b.Entries, func(e store.Entry) bool { return !h.shows(e.Kind.String()) })
		if err := h.writer.bucket(&text, b); err != nil {
			return err
		}
		_, err := h.out.Write(text.Bytes())
		return output.Printed(err)
	})
	files, err := h.Read(ctx, m)
	if files && err == nil {
		cli.Say("no agent answers: this is what its files hold")
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
		cli.Say("warning: %d places of the history are damaged and left out", h.damaged)
	}
	if h.later > 0 {
		cli.Say("warning: %d parts of the history are not shown: a later version of stallspan wrote them", h.later)
	}
	return h.writer.end(h)
}

// Read passes the past to m: from the agent, or from its files where none answers, which it reports.
func (h *Run) Read(ctx context.Context, m *Maker) (files bool, err error) {
	if h.folder != "" {
		return false, h.files(ctx, h.folder, m)
	}
	client, err := api.FromEnvironment()
	if err != nil {
		return false, cli.Usage(err)
	}
	body, failed := client.History(ctx, h.From, h.Until)
	if failed == nil {
		h.agent = true
		defer func() { _ = body.Close() }()
		if err := h.blocks(ctx, body, m); err != nil {
			return false, fmt.Errorf("the history from the agent at %s: %w", client.Server(), err)
		}
		return false, nil
	}
	folder := agentconfig.Default().HistoryFolder()
	if refused := new(api.Error); errors.As(failed, &refused) || folder == "" {
		return false, failed
	}
	if err := h.files(ctx, folder, m); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w; and there is no history in %s", cli.Unanswered(client, failed), folder)
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// files reads the files of a folder.
func (h *Run) files(ctx context.Context, folder string, m *Maker) error {
	if all, err := store.Files(folder); err == nil && len(all) == 0 && folder == h.folder {
		return fmt.Errorf("%s has no history files: give --dir the folder history of an agent's state", folder)
	}
	err := store.Each(folder, h.From, h.Until, func(path string, file io.Reader) error {
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

func (h *Run) blocks(ctx context.Context, in io.Reader, m *Maker) error {
	r := store.NewReader(in)
	r.From, r.Until = h.From, h.Until
	defer func() { h.damaged, h.later = h.damaged+r.Damaged(), h.later+r.Later() }()
	for {
		item, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return cli.ExitError{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
		case err != nil:
			return err
		}
		if err := m.Add(&item, h.From, h.Until); err != nil {
			return err
		}
	}
}

// Windows returns the reports of the newest windows that the agent has kept since a time, the oldest first: of those
// that are wanted, at most so many.
func Windows(ctx context.Context, since time.Time, most int, wanted func(*explain.Report) bool) ([]*explain.Report,
	error,
) {
	var kept []*explain.Report
	m := NewMaker(time.Hour, func(b *Bucket) error {
		for _, e := range b.Entries {
			r := new(explain.Report)
			if e.Kind == store.Window && json.Unmarshal(e.Text, r) == nil && wanted(r) { // else of a later version
				kept = append(kept, r)
				kept = kept[max(0, len(kept)-most):]
			}
		}
		return nil
	})
	_, err := (&Run{From: since, Until: time.Now()}).Read(ctx, m)
	if err == nil {
		err = m.Close()
	}
	return kept, err
}
