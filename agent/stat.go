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
	"github.com/stallspan/stallspan/internal/monitor"
)

// statOptions are the flags of stat.
type statOptions struct{ csv, json, wide bool }

const (
	shortestStat = 100 * time.Millisecond // as often as this machine is sampled at all
	longestStat  = 24 * time.Hour         // the kernel's times of a disk with a deep queue wrap in about a day
)

func statCommand() *cobra.Command {
	var o statOptions
	cmd := &cobra.Command{
		Use:   "stat [flags] [INTERVAL [COUNT]]",
		Short: "Show GPUs and disks side by side, live",
		Long: `Shows what iostat -x shows of every disk and what nvidia-smi shows of every GPU, over the same intervals, with the
machine's I/O pressure and its busiest core. INTERVAL is in seconds (default 1), or a duration such as 500ms; COUNT is how
many intervals are shown (default: until ^C). No number is since boot. A device marked * is a part of others or made of
them: do not add it up.`,
		Example: `  stallspan stat
  stallspan stat 5 12
  stallspan stat --csv 0.5 > load.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.csv && o.json {
				return errors.New("--csv and --json: choose one of them")
			}
			interval, count, err := statArguments(args)
			if err != nil {
				return err
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
	flags.BoolVar(&o.csv, "csv", false, "print a line a device and interval, after one header")
	flags.BoolVar(&o.json, "json", false, "print a JSON object a line for each interval")
	flags.BoolVar(&o.wide, "wide", false, "show all columns, however narrow the terminal is")
	return cmd
}

// statArguments reads INTERVAL and COUNT; a count of 0 is no end.
func statArguments(args []string) (interval time.Duration, count int, err error) {
	if len(args) > 2 {
		return 0, 0, fmt.Errorf("%q is one argument too many: stallspan stat [INTERVAL [COUNT]]", args[2])
	}
	interval = time.Second
	if len(args) > 0 {
		if interval, err = statInterval(args[0]); err != nil {
			return 0, 0, err
		}
	}
	if len(args) > 1 {
		if count, err = strconv.Atoi(args[1]); err != nil || count < 1 {
			return 0, 0, fmt.Errorf("COUNT is %q: give a whole number of intervals, from 1 on", args[1])
		}
	}
	return interval, count, nil
}

func statInterval(text string) (time.Duration, error) {
	interval, err := time.ParseDuration(text)
	if seconds, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		// What no Duration holds is out of bounds on its own side; NaN is below every bound.
		if interval, err = -1, nil; seconds > longestStat.Seconds() {
			interval = longestStat + 1
		} else if seconds >= 0 {
			interval = time.Duration(seconds * float64(time.Second))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("INTERVAL is %q: give seconds, or a duration such as 500ms", text)
	}
	if interval < shortestStat || interval > longestStat {
		return 0, fmt.Errorf("INTERVAL is %q: choose one from %v to %v", text, shortestStat, longestStat)
	}
	return interval, nil
}

// statRun shows one machine until its count is reached, ctx ends, or nobody reads any more.
type statRun struct {
	out      io.Writer
	interval time.Duration
	count    int // 0 for no end
	print    func(to *bytes.Buffer, r *stat.Rates) error

	said int // problems that have been told
}

func (s *statRun) run(ctx context.Context) error {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		return failure{exitFailed, err}
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
			return failure{exitFailed, err}
		}
		// One write an interval: whoever reads along gets it whole.
		if _, err := s.out.Write(text.Bytes()); errors.Is(err, syscall.EPIPE) {
			return nil // as after "| head": nobody wants more
		} else if err != nil {
			return failure{exitFailed, fmt.Errorf("the numbers cannot be written: %w", err)}
		}
		before = after
	}
	return nil
}

// readAll takes a reading of everything, with what the GPUs' drivers have not told yet.
func readAll(m *monitor.Monitor) {
	m.CatchUp()
	m.Tick()
}

// problems tells what cannot be seen, each problem once.
func (s *statRun) problems(m *monitor.Monitor) {
	list := m.Problems()
	for _, p := range list[s.said:] {
		say("not seen: %v", p)
	}
	s.said = len(list)
}

// pace keeps an even beat: the boundaries are fixed by its beginning, so no delay adds up. One that has passed already,
// as after the machine slept, is left out and not made up for.
type pace struct {
	interval time.Duration
	next     time.Time
}

func newPace(interval time.Duration) *pace {
	return &pace{interval: interval, next: time.Now().Add(interval)}
}

// wait returns at the next boundary, or says no when ctx ended before.
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
