package check

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
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
		"late.", explain.Duration(usual.Seconds()), percent(float64(usual)/float64(tick)), explain.Duration(worst.Seconds()))
}

// tooLate says why readings come late: a limit of the CPU time, or other programs.
func (m *machine) tooLate(worst time.Duration) (message, fix string) {
	late := fmt.Sprintf("Readings were up to %s late, so short windows are less precise: ",
		explain.Duration(worst.Seconds()))
	limit := m.cpuLimit()
	switch {
	case limit == "":
		fix := "nice -n -5 stallspan agent # or check again when these rest"
		if exists(m.path("sys/fs/cgroup/system.slice/stallspan.service")) {
			fix = "systemctl edit stallspan # Nice=-5 below [Service], then restart it"
		}
		return late + "other programs use the cores.", fix
	case len(m.containerSigns()) > 0:
		return late + "this container has a CPU limit, or other programs use the cores.",
			"raise the container's CPU limit: " + limit
	}
	return late + "there is a CPU limit, or other programs use the cores.", "raise the limit in " + limit
}

// pace reads the sources as the sampling loop does. late is the delay of each reading, cost is its duration.
func (m *machine) pace(ctx context.Context) (late, cost []time.Duration) {
	waits, cores := pressure.New(m.Root), cpu.New(m.Root)
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

func percent(ratio float64) string {
	if ratio >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*ratio)
	}
	return fmt.Sprintf("%.1g %%", 100*ratio)
}

// cpuLimit returns the file with the CPU limit of this process's cgroup or one above it; "" if none has a limit. A
// container without a cgroup namespace sees its own cgroup as the root of the mount.
func (m *machine) cpuLimit() string {
	text, _ := readFile(m.path("proc/" + strconv.Itoa(m.pid()) + "/cgroup"))
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, scope, _ := strings.Cut(rest, ":")
		top, file := m.path("sys/fs/cgroup/"+controllers), "cpu.cfs_quota_us" // of cgroup v1
		if controllers == "" {
			var err error
			if top, err = cgroup.Dir(m.Root, "/"); err != nil {
				continue
			}
			file = "cpu.max"
		} else if !slices.Contains(strings.Split(controllers, ","), "cpu") {
			continue
		}
		for scope = filepath.Clean("/" + scope); ; scope = filepath.Dir(scope) {
			path := filepath.Join(top, scope, file)
			quota, _ := readFile(path) // in microseconds for each period; "max" or -1 for no limit
			if limit, _, _ := strings.Cut(strings.TrimSpace(quota), " "); limit != "" && limit != "max" && limit != "-1" {
				return path
			}
			if scope == "/" {
				break
			}
		}
	}
	return ""
}
