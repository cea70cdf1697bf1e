package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cpu"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/pressure"
)

const (
	trials    = 20
	trialTick = 40 * time.Millisecond  // all of them in 0.8 s
	tick      = 100 * time.Millisecond // between two readings of the real thing
	maxLate   = tick / 2
)

// clock reads this machine at a steady pace, and reports how late the readings are and how long they take. Without
// anything to read it reports nothing.
func (m *machine) clock(ctx context.Context) []Finding {
	late, cost := m.pace(ctx)
	if len(late) == 0 {
		return nil
	}
	slices.Sort(late)
	slices.Sort(cost)
	worst, usual := late[len(late)-1], cost[len(cost)/2]
	f := Finding{Area: Clock, What: "readings", Details: map[string]any{
		"readings": len(late), "late_max_s": worst.Seconds(), "late_median_s": late[len(late)/2].Seconds(),
		"reading_median_s": usual.Seconds()}}
	if worst >= maxLate {
		message, fix := m.tooLate(worst)
		return f.as(Limited, fix, "%s", message)
	}
	return f.as(Seen, "", "A reading of this machine takes %s, so ten a second use %s of one core; they were at most %s "+
		"late.", short(usual), percent(float64(usual)/float64(tick)), short(worst))
}

// tooLate says why readings come late: a limit of the CPU time, or other programs.
func (m *machine) tooLate(worst time.Duration) (message, fix string) {
	late := fmt.Sprintf("Readings were up to %s late, so short windows are less precise: ", short(worst))
	limit := m.cpuLimit()
	switch {
	case limit == "":
		return late + "other programs use the cores.", "nice -n -5 stallspan agent # or check again when these rest"
	case len(m.containerSigns()) > 0:
		return late + "this container has a CPU limit, or other programs use the cores.",
			"raise the container's CPU limit: " + limit
	}
	return late + "there is a CPU limit, or other programs use the cores.", "raise the limit in " + limit
}

// pace reads the sources as the sampling loop does. late is the delay of each reading, cost is its duration.
func (m *machine) pace(ctx context.Context) (late, cost []time.Duration) {
	waits, cores := pressure.New(m.Root), cpu.New(m.Root)
	defer waits.Close()
	sources := []sample.Source{waits, cores}
	if disks, err := disk.New(m.Root); err == nil {
		defer func() { _ = disks.Close() }()
		sources = append(sources, disks)
	}
	var s sample.Sample
	read := func() (anything bool) {
		for _, source := range sources {
			s.Reset()
			_ = source.Read(&s) // other checks report what it lacks
			anything = anything || len(s.Pressures)+len(s.Cores)+len(s.Disks) > 0
		}
		return anything
	}
	if !read() { // the first one opens the files
		return nil, nil
	}
	began := sample.Now().Mono
	for i := 1; i <= trials; i++ {
		due := began + time.Duration(i)*trialTick
		timer := time.NewTimer(due - sample.Now().Mono)
		select {
		case <-ctx.Done():
			timer.Stop()
			return late, cost
		case <-timer.C:
		}
		now := sample.Now().Mono
		late = append(late, now-due)
		read()
		cost = append(cost, sample.Now().Mono-now)
		if now-began > trials*trialTick+maxCall {
			break // the machine is late enough for a result
		}
	}
	return late, cost
}

// short formats a duration with two or three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%d us", max(0, d.Microseconds()))
	}
}

func percent(ratio float64) string {
	if ratio >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*ratio)
	}
	return fmt.Sprintf("%.1g %%", 100*ratio)
}
