package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
)

// statOptions are the flags of stat.
type statOptions struct{ csv, json, wide bool }

const (
	minInterval = config.DefaultInterval // shorter ones would end between two samples
	maxInterval = 24 * time.Hour         // the kernel's times of a disk with a deep queue wrap in about a day
)

func statCommand() *cobra.Command {
	var o statOptions
	cmd := &cobra.Command{
		Use:   "stat [flags] [INTERVAL [COUNT]]",
		Short: "Show GPUs and disks next to each other, live",
		Long: `Shows the columns of iostat -x for every disk and those of nvidia-smi for every GPU, over the same
intervals, with the machine's I/O pressure and its busiest core. INTERVAL is in seconds (default 1),
or a duration such as 500ms. COUNT is the number of intervals (default: until ^C). No number is
since boot. A device marked * is a part of others or made of them: do not add it up.`,
		Example: `  stallspan stat
  stallspan stat 5 12
  stallspan stat --csv 0.5 > load.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.csv && o.json {
				return usagef("--csv and --json: choose one of them")
			}
			interval, count, err := statArguments(args)
			if err != nil {
				return usage(err)
			}
			s := &statRun{out: cmd.OutOrStdout(), interval: interval, count: count}
			switch {
			case o.csv:
				s.print = new(statCSV).print
			case o.json:
				s.print = printStatJSON
			default:
				s.print = (&statTable{wide: o.wide, terminal: os.Stdout, fine: interval%time.Second != 0}).print
			}
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.csv, "csv", false, "print one line for each device and interval, after a header")
	flags.BoolVar(&o.json, "json", false, "print one JSON object for each interval")
	flags.BoolVar(&o.wide, "wide", false, "show all columns, also on a narrow terminal")
	return cmd
}

// statArguments parses INTERVAL and COUNT. A count of 0 means without end.
func statArguments(args []string) (interval time.Duration, count int, err error) {
	if len(args) > 2 {
		return 0, 0, fmt.Errorf("unexpected argument %q: stallspan stat [INTERVAL [COUNT]]", args[2])
	}
	interval = time.Second
	if len(args) > 0 {
		if interval, err = statInterval(args[0]); err != nil {
			return 0, 0, err
		}
	}
	if len(args) > 1 {
		if count, err = strconv.Atoi(args[1]); err != nil || count < 1 {
			return 0, 0, fmt.Errorf("COUNT %q: give a whole number, 1 or more", args[1])
		}
	}
	return interval, count, nil
}

func statInterval(text string) (time.Duration, error) {
	interval, err := parseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("INTERVAL %q: %w", text, err)
	}
	if interval < minInterval || interval > maxInterval {
		return 0, fmt.Errorf("INTERVAL %q: choose %v to %v", text, minInterval, maxInterval)
	}
	return interval, nil
}

// statRun shows one machine until its count is reached, ctx ends, or the reader closes the output.
type statRun struct {
	out      io.Writer
	interval time.Duration
	count    int // 0 for without end
	print    func(to *bytes.Buffer, r *stat.Rates) error

	warned int // problems that were printed
}

func (s *statRun) run(ctx context.Context) error {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		return err
	}
	m.Start()
	defer m.Stop()
	readAll(m)
	before, pace := m.Collect(), newPace(s.interval)
	for shown := 0; s.count == 0 || shown < s.count; shown++ {
		if !pace.wait(ctx) {
			return nil
		}
		readAll(m)
		after := m.Collect()
		s.problems(m)
		r := stat.Between(&before, &after)
		var text bytes.Buffer
		if err := s.print(&text, &r); err != nil {
			return err
		}
		// One write for each interval: a reader gets it whole.
		if _, err := s.out.Write(text.Bytes()); errors.Is(err, syscall.EPIPE) {
			return nil // as after "| head"
		} else if err != nil {
			return printed(err)
		}
		before = after
	}
	return nil
}

// readAll reads all sources, and waits for late readings of the GPUs.
func readAll(m *monitor.Monitor) {
	m.CatchUp()
	m.Tick()
}

// problems prints each problem once.
func (s *statRun) problems(m *monitor.Monitor) {
	list := m.Problems()
	for _, p := range list[s.warned:] {
		warn(p)
	}
	s.warned = len(list)
}

// pace keeps an even beat. The boundaries are fixed by its start, so that delays do not add up. A boundary that has
// passed, as after the machine slept, is skipped.
type pace struct {
	interval time.Duration
	next     time.Time
}

func newPace(interval time.Duration) *pace {
	return &pace{interval: interval, next: time.Now().Add(interval)}
}

// wait returns true at the next boundary, or false when ctx ends before.
func (p *pace) wait(ctx context.Context) bool {
	timer := time.NewTimer(time.Until(p.next))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	late := time.Since(p.next)
	p.next = p.next.Add(late - late%p.interval + p.interval)
	return ctx.Err() == nil
}
