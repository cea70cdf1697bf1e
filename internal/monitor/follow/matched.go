package follow

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	// maxMatched bounds the cgroups that are followed. They share places with the processes that hold memory of GPUs.
	maxMatched = 32
	// maxOfUser bounds those that belong to one user: users may make cgroups, and give them any names.
	maxOfUser = maxMatched / 4
	// searchEvery is how often cgroups are searched for. A search may take searchShare of the time.
	searchEvery = 5 * time.Second
	searchShare = 1000
	// matchedGone is how long a cgroup has had no process when it leaves its place. Its ledgers have reached its end then.
	matchedGone = 7 * time.Second
	// hiddenFor is how long a cgroup whose processes cannot be seen is not tried again.
	hiddenFor = time.Minute
	maxHidden = 256
)

// anyProcess stands for all processes of a cgroup.
const anyProcess = -1

// matched are the jobs that are followed because patterns match their cgroups. Only FollowCgroups uses it.
type matched struct {
	search *cgroup.Search           // nil for no patterns
	byPath map[string]*matchedJob   // by cgroup
	hidden map[string]time.Duration // cgroups whose processes cannot be seen, until when
	due    time.Duration            // of the next search
}

type matchedJob struct {
	cgroup.Group
	job   string
	first int           // its oldest process when it was found: it distinguishes cgroups that are called the same
	alive time.Duration // the last time that it had a process
}

// Match makes FollowCgroups follow the cgroups that patterns match. Call it before.
func (j *Jobs) Match(patterns []string) error {
	if len(patterns) == 0 {
		return nil
	}
	parsed, err := cgroup.ParsePatterns(patterns)
	if err != nil {
		return fmt.Errorf("cgroups%w", err)
	}
	j.matched.search = cgroup.NewSearch(j.root, parsed)
	return nil
}

// FollowCgroups follows each cgroup that patterns match, as one job with all processes in it and below it, without any
// announcement. The processes of such a cgroup that hold memory of a GPU are no jobs of their own. At most 32 are
// followed at a time. Call it from one goroutine, once a second, and FollowHolders after it; it takes a reading for
// each new job.
func (j *Jobs) FollowCgroups(who Who) {
	m := &j.matched
	if j.sources == nil || m.search == nil {
		return
	}
	now := j.readings.Present().Mono
	m.drop(now, j)
	holding, gpus := j.holding()
	for _, known := range m.byPath {
		j.readings.Name(j.groupName(who, known, gpus[known.Path]))
	}
	found := holding // first: they have what is scarce
	if now >= m.due {
		began := time.Now()
		all, err := m.search.All()
		j.problems.Note("jobs", asSetting(err))
		m.due = now + max(searchEvery, searchShare*time.Since(began))
		found = append(found, all...)
	}
	added := 0
	for _, g := range found {
		if added == holdersAtOnce {
			m.due = now // the others are next
			return
		}
		if j.mayFollow(g, now) && j.followGroup(g, now, who, gpus[g.Path]) {
			added++
		}
	}
}

// asSetting names the setting in an error about it.
func asSetting(err error) error {
	if err != nil {
		return fmt.Errorf("sampling.cgroups: %w", err)
	}
	return nil
}

// holding returns the cgroups that match and have a process with memory of a GPU, and the GPUs of each by its path.
func (j *Jobs) holding() (list []cgroup.Group, gpus map[string][]string) {
	gpus = map[string][]string{}
	held := j.readings.HeldGPUs()
	for _, pid := range slices.Sorted(maps.Keys(held)) {
		scope, err := j.groups.ScopeOf(pid)
		if err != nil {
			continue
		}
		path := j.matched.above(scope)
		if path == "" {
			g, ok := j.matched.search.Of(scope)
			if !ok {
				continue
			}
			path = g.Path
			list = append(list, g)
		}
		gpus[path] = append(gpus[path], held[pid]...)
	}
	for path, all := range gpus {
		slices.Sort(all)
		gpus[path] = slices.Compact(all)
	}
	return list, gpus
}

// above returns the followed cgroup that a cgroup is or is below of; "" for none.
func (m *matched) above(scope string) string {
	for path := range m.byPath {
		if scope == path || strings.HasPrefix(scope, path+"/") {
			return path
		}
	}
	return ""
}

// isMatched reports whether a process is in a cgroup that is followed.
func (j *Jobs) isMatched(pid int) bool {
	if len(j.matched.byPath) == 0 {
		return false
	}
	scope, err := j.groups.ScopeOf(pid)
	return err == nil && j.matched.above(scope) != ""
}

var (
	errManyMatched = fmt.Errorf("more than %d cgroups match, or there is no place for them: "+
		"give patterns that match fewer", maxMatched)
	errManyOfUser = fmt.Errorf("more than %d cgroups of one user match: give patterns that match fewer", maxOfUser)
)

// mayFollow reports whether a cgroup is new, and whether there is room for it.
func (j *Jobs) mayFollow(g cgroup.Group, now time.Duration) bool {
	m := &j.matched
	if known := m.byPath[g.Path]; known != nil {
		if known.Number == g.Number {
			return false
		}
		j.Unfollow(known.job) // another one has the path now
		delete(m.byPath, g.Path)
	}
	if until, hidden := m.hidden[g.Path]; hidden && now < until {
		return false
	}
	// Above or below one that is followed: a process has moved since that one was found.
	if m.above(g.Path) != "" || slices.ContainsFunc(slices.Collect(maps.Keys(m.byPath)), func(path string) bool {
		return strings.HasPrefix(path, g.Path+"/")
	}) {
		return false
	}
	ofUser := 0
	for _, known := range m.byPath {
		if known.Owner == g.Owner {
			ofUser++
		}
	}
	switch {
	case len(m.byPath) >= maxMatched || len(m.byPath)+len(j.holders.byPID) >= maxHolders:
		j.problems.Note("jobs", asSetting(errManyMatched))
		return false
	case g.Owner != 0 && int(g.Owner) != os.Geteuid() && ofUser >= maxOfUser:
		j.problems.Note("jobs", asSetting(errManyOfUser))
		return false
	}
	return true
}

// followGroup reports whether the cgroup is followed now.
func (j *Jobs) followGroup(g cgroup.Group, now time.Duration, who Who, gpus []string) bool {
	m := &j.matched
	known := &matchedJob{Group: g, job: "cgroup " + strconv.FormatUint(g.Number, 10), alive: now}
	wanted := sampling.Job{ID: known.job, Pressure: g.Path, Own: true, Scope: window.Container, OwnTime: true}
	if err := j.follow("", wanted, anyProcess); err != nil {
		if m.search.Same(g) { // else it has ended meanwhile
			j.problems.Note("jobs", asSetting(err))
		}
		return false
	}
	pids := j.readings.Processes(known.job)
	if len(pids) == 0 {
		j.Unfollow(known.job)
		if m.search.Hidden(g) {
			j.hide(g.Path, now)
		}
		return false
	}
	known.first = pids[0]
	m.byPath[g.Path] = known
	j.readings.Name(j.groupName(who, known, gpus))
	return true
}

var errHidden = errors.New("the processes of cgroups that match cannot be seen: run in the host's namespace of " +
	"processes (hostPID: true in Kubernetes, --pid=host in Docker), whose root may then also send signals to all of them")

// hide leaves a cgroup out for a while, because its processes cannot be seen.
func (j *Jobs) hide(path string, now time.Duration) {
	m := &j.matched
	j.problems.Note("jobs", asSetting(errHidden))
	if len(m.hidden) >= maxHidden {
		m.hidden = map[string]time.Duration{}
	}
	m.hidden[path] = now + hiddenFor
}

// drop unfollows the cgroups that have had no process for a while.
func (m *matched) drop(now time.Duration, j *Jobs) {
	for path, known := range m.byPath {
		if j.readings.HasProcess(known.job) {
			known.alive = now
		}
		if now-known.alive > matchedGone {
			j.Unfollow(known.job)
			delete(m.byPath, path)
		}
	}
}

// maxNamed bounds the processes of a cgroup that are looked at for its name.
const maxNamed = 16

// groupName returns who a cgroup's job is, by its oldest process. Slurm's own process is root's, and is left out.
func (j *Jobs) groupName(who Who, known *matchedJob, gpus []string) (name sample.JobName) {
	pids := j.readings.Processes(known.job)
	if len(pids) == 0 {
		return name
	}
	first := pids[0]
	for _, pid := range pids[:min(len(pids), maxNamed)] {
		if process.Name(j.root, pid) != slurmDaemon {
			first = pid
			break
		}
	}
	name = who(first, known.Path, gpus)
	name.ID, name.PID = known.job, known.first
	return name
}

// slurmDaemon is the process of Slurm that starts a step.
const slurmDaemon = "slurmstepd"
