package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
)

func eventsCommand() *cobra.Command {
	o := eventsOptions{last: 10}
	cmd := &cobra.Command{
		Use:   "events [flags]",
		Short: "Show what happens to the machine: heat, lost GPUs, failing and saturated disks, slow windows",
		Long: `Shows the newest events of the agent, or of the Collector's receiver in a pipeline of logs, and then those to come
until ^C. Where its socket is not the usual one, STALLSPAN_SOCKET says where.`,
		Example: `  stallspan events
  stallspan events --json --last 256 --once
  stallspan events test stallspan.gpu.temperature.high`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no command of events: see stallspan events --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.last < 0 || o.last > alert.BoardSize {
				return fmt.Errorf("--last is %d: choose 0 to %d", o.last, alert.BoardSize)
			}
			return o.show(cmd)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object a line (docs/events.md)")
	flags.IntVar(&o.last, "last", o.last, fmt.Sprintf("show so many of the newest events first, at most %d", alert.BoardSize))
	flags.DurationVar(&o.since, "since", 0, "of those, show the ones that are not older, like 1h")
	flags.BoolVar(&o.once, "once", false, "end behind them, and do not wait for more")
	cmd.AddCommand(eventsTestCommand())
	return cmd
}

type eventsOptions struct {
	asJSON, once bool
	last         int
	since        time.Duration // 0 for no limit
}

// errUnread ends the showing: nobody reads it any more.
var errUnread = errors.New("the events cannot be printed")

func (o *eventsOptions) show(cmd *cobra.Command) error {
	began := time.Now()
	last := o.last
	if o.since > 0 && !cmd.Flags().Changed("last") {
		last = alert.BoardSize
	}
	err := api.NewClient(api.DefaultSocket()).Events(cmd.Context(), last, !o.once, func(line []byte) error {
		var l shownEvent
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if o.since > 0 && l.Missed == 0 && l.Time.Before(began.Add(-o.since)) {
			return nil
		}
		if o.asJSON {
			return printEvent(cmd.OutOrStdout(), string(line))
		}
		return printEvent(cmd.OutOrStdout(), l.words())
	})
	switch {
	case cmd.Context().Err() != nil, errors.Is(err, errUnread):
		return nil
	case err != nil:
		return failure{exitFailed, unanswered(err)}
	case !o.once:
		return failure{exitFailed, errors.New("the agent has ended, or showed the events for too long to somebody who did not read them")}
	}
	return nil
}

// printEvent writes a line; the error says that the reader has left.
func printEvent(out io.Writer, line string) error {
	if _, err := fmt.Fprintln(out, line); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// shownEvent is a line of the stream.
type shownEvent struct {
	emit.EventJSON
	Missed uint64 `json:"missed"` // events came too fast; nothing else is in such a line
}

func (e *shownEvent) words() string {
	if e.Missed > 0 {
		return fmt.Sprintf("(%d events came too fast to be shown)", e.Missed)
	}
	state := e.Severity
	if e.Resolved {
		state = "OVER"
	}
	return printable(fmt.Sprintf("%s %-5s %s  %s", e.Time.Local().Format("2006-01-02 15:04:05"), state, e.Name, e.Body))
}

func eventsTestCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Have the agent make an event that is a test, and say what its actions did",
		Long: `Has the agent make an event of that name, which says of itself that it is a test and that nothing has happened. It
leaves as a log record, is shown, and handed to the actions that the agent's config has for it. The names:

  ` + strings.Join(emit.EventNames(), "\n  "),
		Example: "  stallspan events test stallspan.gpu.lost",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("events test needs the name of an event: see stallspan events test --help")
			}
			return emit.CheckEvent(args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			tried, err := api.NewClient(api.DefaultSocket()).Try(cmd.Context(), args[0])
			if err != nil {
				return failure{exitFailed, unanswered(err)}
			}
			return showTried(cmd.OutOrStdout(), &tried, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what came of it as JSON")
	return cmd
}

// showTried prints what came of a test; the exit code says whether every action did what it should.
func showTried(out io.Writer, t *api.Tried, asJSON bool) error {
	failed := false
	lines := []string{"log record: " + t.Logs}
	for _, a := range t.Actions {
		state := "ok"
		if !a.OK {
			state, failed = "FAILED", true
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %s (%.1f s)", a.Action, state, a.Says, a.Took))
	}
	if len(t.Actions) == 0 {
		lines = append(lines, "actions: the config has none for this event")
	}
	if asJSON {
		text, err := json.Marshal(t)
		if err != nil {
			return failure{exitFailed, err}
		}
		lines = []string{string(text)}
	}
	for _, line := range lines {
		if !asJSON {
			line = printable(line)
		}
		if err := printEvent(out, line); err != nil {
			return failure{exitFailed, err}
		}
	}
	if failed {
		return exit(exitFailed)
	}
	return nil
}
