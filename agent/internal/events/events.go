// Package events is the command events: it shows the events of an agent, and makes it emit one as a test.
package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/semconv"
)

// Command is stallspan events.
func Command() *cobra.Command {
	o := options{last: 10}
	cmd := &cobra.Command{
		Use:   "events [flags]",
		Short: "Show events: hot or lost GPUs, failing or saturated disks, slow windows",
		Long: `Shows the newest events of the agent, or of a Collector with the receiver in a pipeline of logs, and
then new ones until ^C. STALLSPAN_SOCKET sets another socket than the default one.`,
		Example: `  stallspan events
  stallspan events --json --last 256 --once
  stallspan events test stallspan.gpu.temperature.high`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.last < 0 || o.last > alert.BoardSize {
				return cli.Usagef("--last %d: choose 0 to %d", o.last, alert.BoardSize)
			}
			return o.show(cmd)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object for each event (stallspan docs events)")
	flags.IntVar(&o.last, "last", o.last, fmt.Sprintf("begin with this `number` of the newest events, at most %d", alert.BoardSize))
	cli.DurationFlag(flags, &o.since, "since", "begin with the events of this `duration`, such as 1h")
	flags.BoolVar(&o.once, "once", false, "exit after these, and do not wait for more")
	cli.Group(cmd, testCommand())
	return cmd
}

type options struct {
	asJSON, once bool
	last         int
	since        time.Duration // 0 for no limit
}

// errUnread ends the output when its reader has closed it.
var errUnread = errors.New("the events cannot be printed")

func (o *options) show(cmd *cobra.Command) error {
	began := time.Now()
	last := o.last
	if o.since > 0 && !cmd.Flags().Changed("last") {
		last = alert.BoardSize
	}
	client, err := api.FromEnvironment()
	if err != nil {
		return cli.Usage(err)
	}
	shown := false
	err = client.Events(cmd.Context(), last, !o.once, func(line []byte) error {
		var l Shown
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if o.since > 0 && l.Missed == 0 && l.Time.Before(began.Add(-o.since)) {
			return nil
		}
		shown = true
		if o.asJSON {
			return printEvent(cmd.OutOrStdout(), string(line))
		}
		return printEvent(cmd.OutOrStdout(), l.Words())
	})
	switch {
	case cmd.Context().Err() != nil, errors.Is(err, errUnread):
		return nil
	case err != nil:
		return cli.Unanswered(client, err)
	case !o.once:
		return errors.New("the agent has stopped, or closed the connection because its output was not read")
	case !shown:
		cli.Say("no events")
	}
	return nil
}

// printEvent writes a line. The error is errUnread.
func printEvent(out io.Writer, line string) error {
	if _, err := fmt.Fprintln(out, line); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// Shown is a line of the stream.
type Shown struct {
	emit.EventJSON
	Missed uint64 `json:"missed"` // events that came too fast; such a line has nothing else
}

// Words is the event in one line.
func (e *Shown) Words() string {
	if e.Missed > 0 {
		return fmt.Sprintf("(%d events came too fast and are left out)", e.Missed)
	}
	state := e.Severity
	switch {
	case e.Test:
		state = "TEST"
	case e.Resolved:
		state = "OVER"
	}
	body := e.Body
	if share := strings.Index(body, " %"); share >= 0 { // what a window read is in its report, and in --json
		if end := strings.Index(body[share:], ": "); end >= 0 {
			body = body[:share+end]
		}
	}
	line := fmt.Sprintf("%s %-5s %s  %s", e.Time.Local().Format("2006-01-02 15:04:05"), state, e.Name, body)
	who, _ := e.Attributes[string(semconv.EventReporterKey)].(string)
	if who != "" && who != "uid 0" && who != "uid "+strconv.Itoa(os.Geteuid()) {
		line += " (reported by " + who + ")"
	}
	return output.Printable(line)
}

func testCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Make the agent emit a test event, and show what its actions did",
		Long: `Makes the agent emit an event of this name that is marked as a test. It is exported as a log record,
shown, and handed to the actions in the agent's config. The names:

  ` + strings.Join(emit.EventNames(), "\n  "),
		Example:           "  stallspan events test stallspan.gpu.lost",
		ValidArgsFunction: cli.CompleteOneWord(emit.EventNames),
		Args: cobra.MatchAll(cli.Needs(1, 1, "events test needs the name of an event: see stallspan events test --help"),
			func(_ *cobra.Command, args []string) error { return emit.CheckEvent(args[0]) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			tried, err := client.Try(cmd.Context(), args[0])
			if err != nil {
				return cli.Unanswered(client, err)
			}
			return showTried(cmd.OutOrStdout(), &tried, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// showTried prints the result of a test. The exit code is 1 if an action failed.
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
		lines = append(lines, "actions: none in the config for this event")
	}
	if asJSON {
		text, err := json.Marshal(t)
		if err != nil {
			return err
		}
		lines = []string{string(text)}
	}
	for _, line := range lines {
		if !asJSON {
			line = output.Printable(line)
		}
		if err := printEvent(out, line); err != nil {
			return err
		}
	}
	if failed {
		return cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}
