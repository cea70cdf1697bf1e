package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/procs"
	"github.com/stallspan/stallspan/agent/internal/runs"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
)

const (
	// maxFound bounds the jobs that are found: each costs about 0.05 % of a core.
	maxFound = 8
	// maxUnnamed bounds them where it is not known which GPUs a job uses, so that each has a ledger for all GPUs.
	maxUnnamed = 2
	// idleFor is how long a found job that holds no GPU does nothing before it is left out.
	idleFor = 30 * time.Second
	// endedFor is how long a job stays after its end, and briefly is the age up to which a found one does not.
	endedFor = time.Minute
	briefly  = 10 * time.Second
	// steadyFor is how long a process works before it becomes a job: many end sooner.
	steadyFor = 2 * time.Second
	// askEvery is the time between two requests to a server that answers at once. A slow one is asked less often: it is
	// left alone for so many times what it took.
	askEvery  = 900 * time.Millisecond
	askRarely = 100
	// askAgain is the time until a server that does not answer is asked again.
	askAgain = 5 * time.Second
	maxRuns  = 16
)

// Machine makes frames of this machine. It is not safe for concurrent use.
type Machine struct {
	agent   *api.Client // of the machine's agent
	files   procfs.FS
	named   bool // by the user: no other jobs are found
	builder builder
	jobs    []*live
	servers map[string]*server // by socket
	names   map[int]named
	seen    map[int]time.Duration // Stamp.Mono when a process was first found to work
	hidden  int                   // processes that cannot be read
	begun   time.Duration         // Stamp.Mono

	gpuWorks bool // one did since the frame before
}

// live is a job of this machine.
type live struct {
	watched

	named  bool          // by the user
	worked time.Duration // Stamp.Mono when it last did something
	gone   time.Duration // Stamp.Mono of its end
}

// named is the name of a process, with its parent.
type named struct {
	text   string
	parent int
	at     time.Duration // Stamp.Mono when they were read
}

// server is an agent, or a run, with its newest answer.
type server struct {
	client *api.Client
	label  string
	due    time.Time
	all    []Window
	err    error
}

// NewMachine prepares the frames of this machine, and follows the jobs that the user has named. Without any, those that
// work are found. on has started.
func NewMachine(on *monitor.Monitor, agent *api.Client, files procfs.FS, jobs []procs.Process) (*Machine, error) {
	m := &Machine{agent: agent, files: files, named: len(jobs) > 0, servers: map[string]*server{}, names: map[int]named{}}
	host, _ := os.Hostname()
	m.builder = builder{monitor: on, name: m.nameOf, parent: m.parentOf, host: host}
	m.builder.frame(nil) // what the first interval begins with
	m.begun = sample.Now().Mono
	for _, p := range jobs {
		if err := m.follow(p, true); err != nil {
			return nil, fmt.Errorf("process %d cannot be followed: %w", p.PID, err)
		}
	}
	if !m.named {
		on.Jobs.ExpectSpans(func(int) string { return "" }) // all are of one user: who looks
	}
	return m, nil
}

// Next returns the present frame.
func (m *Machine) Next(ctx context.Context) *Frame {
	now := sample.Now().Mono
	m.review(now)
	if !m.named {
		m.find(now)
	}
	jobs := make([]*watched, len(m.jobs))
	for i, j := range m.jobs {
		jobs[i] = &j.watched
	}
	f := m.builder.frame(jobs)
	for i := range f.Jobs {
		if j := &f.Jobs[i]; j.CPU > 0.01 || j.Read > 0 || j.Write > 0 || j.Recent.Busy > 0 {
			m.jobs[i].worked = now
		}
	}
	m.gpuWorks = slices.ContainsFunc(f.GPUs, func(g GPU) bool { return valueOf(g.Utilization) > 0.01 })
	m.askAll(ctx, f)
	m.explain(f)
	return f
}

// follow makes a process a job.
func (m *Machine) follow(p procs.Process, byName bool) error {
	jobs := m.builder.monitor.Jobs
	id := jobs.JobOf(p.PID)
	if id == "" {
		return errors.New("it has ended")
	}
	if slices.ContainsFunc(m.jobs, func(j *live) bool { return j.id == id }) {
		return nil
	}
	follow := func() error { return jobs.FollowOwn(id, p.PID) }
	if !m.namesHolders() {
		follow = func() error { return jobs.Follow(id, p.PID, "", false) }
	}
	if err := follow(); err != nil {
		return err
	}
	now := sample.Now()
	m.jobs = append(m.jobs, &live{watched: watched{id: id, pid: p.PID, name: p.Name, since: now}, named: byName,
		worked: now.Mono})
	return nil
}

// namesHolders reports whether the driver's list of processes shows who uses a GPU: it does not from within a
// container, and not if a GPU works without a process in the list.
func (m *Machine) namesHolders() bool {
	s := &m.builder.before.GPUs
	if len(s.GPUProcesses) == 0 {
		return !m.gpuWorks
	}
	return !slices.ContainsFunc(s.GPUProcesses, func(p sample.GPUProcess) bool { return m.nameOf(p.PID) == "" })
}

// review ends jobs whose processes have ended, and drops those that ended a while ago, or are idle.
func (m *Machine) review(now time.Duration) {
	m.jobs = slices.DeleteFunc(m.jobs, func(j *live) bool {
		if !j.ended && m.builder.monitor.Jobs.JobOf(j.pid) != j.id && !m.builder.runs(j.id) {
			j.ended, j.gone = true, now
			m.builder.monitor.Jobs.Unfollow(j.id)
		}
		switch {
		case j.ended:
			return !j.named && (now-j.gone > endedFor || j.last.Watched < briefly)
		case !j.named && m.belongs(j):
			m.builder.monitor.Jobs.Unfollow(j.id)
			return true
		case !j.named && !j.holds && now-j.worked > idleFor:
			m.builder.monitor.Jobs.Unfollow(j.id)
			return true
		}
		return false
	})
}

// belongs reports whether a job is below another one, which was found later.
func (m *Machine) belongs(j *live) bool {
	p, ok := procs.Read(m.files, j.pid)
	return ok && len(m.jobs) > 1 && m.below(p, nil)
}

// runs reports whether a job has processes.
func (b *builder) runs(id string) bool {
	j := find(b.before.Jobs.Jobs, id)
	return j != nil && j.Processes > 0
}

// found is how many jobs run that the user did not name.
func (m *Machine) found() (n int) {
	for _, j := range m.jobs {
		if !j.named && !j.ended {
			n++
		}
	}
	return n
}

// find follows the processes that hold memory of a GPU, and then those that work most. A process below one that is
// followed, or that works too, belongs to that one.
func (m *Machine) find(now time.Duration) {
	var pids []int
	for _, p := range m.builder.before.GPUs.GPUProcesses {
		pids = append(pids, p.PID)
	}
	onGPU, most := len(pids), maxFound
	if len(m.builder.before.GPUs.GPUs) > maxUnnamed && !m.namesHolders() {
		most = maxUnnamed
	}
	candidates, hidden := m.builder.monitor.Jobs.Candidates()
	m.hidden = hidden
	for _, c := range candidates {
		pids = append(pids, c.PID)
	}
	seen := make(map[int]time.Duration, len(pids))
	for i, pid := range pids {
		if m.own(pid) {
			continue
		}
		if at, ok := m.seen[pid]; ok {
			seen[pid] = at
		} else if seen[pid] = now; i >= onGPU {
			continue
		}
		if i >= onGPU && now-seen[pid] < steadyFor || m.found() >= most || pid == os.Getpid() ||
			slices.ContainsFunc(m.jobs, func(j *live) bool { return j.pid == pid && !j.ended }) {
			continue
		}
		p, ok := procs.Read(m.files, pid)
		if !ok || m.below(p, pids) {
			continue
		}
		p.Name = cmp.Or(p.Name, m.nameOf(pid))
		_ = m.follow(p, false) // it has ended, or belongs to another user
	}
	m.seen = seen
}

// own reports whether a process is stallspan, as around a program that it runs.
func (m *Machine) own(pid int) bool {
	p, ok := procs.Read(m.files, pid)
	return !ok || p.Program == filepath.Base(os.Args[0])
}

// below reports whether a process is below one that is followed or listed, or below this program.
func (m *Machine) below(p procs.Process, list []int) bool {
	const deepest = 32
	for range deepest {
		if p.Parent <= 1 {
			return false
		}
		if slices.Contains(list, p.Parent) && !m.own(p.Parent) || p.Parent == os.Getpid() ||
			slices.ContainsFunc(m.jobs, func(j *live) bool { return j.pid == p.Parent && !j.ended }) {
			return true
		}
		var ok bool
		if p, ok = procs.Read(m.files, p.Parent); !ok {
			return false
		}
	}
	return false
}

// nameFor is how long the name of a process is kept: a process may start another program.
const nameFor = 10 * time.Second

func (m *Machine) nameOf(pid int) string { return m.lookUp(pid).text }

func (m *Machine) parentOf(pid int) int { return m.lookUp(pid).parent }

func (m *Machine) lookUp(pid int) named {
	now := sample.Now().Mono
	if n, ok := m.names[pid]; ok && now-n.at < nameFor {
		return n
	}
	for other, n := range m.names {
		if now-n.at >= nameFor {
			delete(m.names, other)
		}
	}
	p, _ := procs.Read(m.files, pid)
	n := named{p.Name, p.Parent, now}
	m.names[pid] = n
	return n
}

// askAll asks the agent and the runs of this machine for their windows, in turn.
func (m *Machine) askAll(ctx context.Context, f *Frame) {
	others := runs.Sockets()
	sockets := append([]string{m.agent.Server()}, others[:min(len(others), maxRuns)]...)
	for socket := range m.servers {
		if !slices.Contains(sockets, socket) {
			delete(m.servers, socket)
		}
	}
	answered := false
	for i, socket := range sockets {
		s := m.servers[socket]
		if s == nil {
			s = &server{client: api.NewClient(socket), label: runLabel(socket)}
			if i == 0 {
				s.client, s.label = m.agent, "agent"
			}
			m.servers[socket] = s
		}
		s.ask(ctx)
		answered = answered || s.err == nil
		f.Windows = append(f.Windows, s.all...)
		if s.err != nil && i == 0 && !cli.Unserved(s.err) {
			f.Notes = append(f.Notes, s.err.Error())
		}
	}
	f.Windows = newestWindows(f.Windows)
	if len(f.Windows) == 0 {
		f.NoWindows = "No program announces epochs here: start it with stallspan run, or start stallspan agent."
		if answered {
			f.NoWindows = "No windows within the last hour."
		}
	}
}

// runLabel names a run by its process: the folder of its socket is called stallspan-run-PID-...
func runLabel(socket string) string {
	parts := strings.Split(filepath.Base(filepath.Dir(socket)), "-")
	if len(parts) < 3 {
		return "run"
	}
	return "run " + parts[2]
}

// newestWindows sorts windows, the open ones first and then the newest ones, and leaves out what is more than a frame
// shows.
func newestWindows(list []Window) []Window {
	slices.SortStableFunc(list, func(a, b Window) int {
		if a.Open != b.Open {
			return map[bool]int{true: -1, false: 1}[a.Open]
		}
		return b.End.Compare(a.End)
	})
	return slices.Clip(list[:min(len(list), shownWindows)])
}

// ask gets the windows of a server if that is due.
func (s *server) ask(ctx context.Context) {
	began := time.Now()
	if began.Before(s.due) {
		return
	}
	const patience = 500 * time.Millisecond // a frame waits so long at most
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	listing, err := s.client.Windows(ctx)
	took := time.Since(began)
	s.due = began.Add(max(askEvery, askRarely*took))
	if s.err = err; err != nil {
		s.all, s.due = nil, began.Add(askAgain)
		return
	}
	s.all = make([]Window, 0, min(len(listing.Running)+len(listing.Ended), 2*shownWindows))
	for _, r := range listing.Running[max(0, len(listing.Running)-shownWindows):] {
		s.all = append(s.all, Window{r, s.label, true})
	}
	slices.SortStableFunc(listing.Ended, func(a, b *explain.Report) int { return a.End.Compare(b.End) })
	for _, r := range listing.Ended[max(0, len(listing.Ended)-shownWindows):] {
		s.all = append(s.all, Window{r, s.label, false})
	}
}

// explain says why lists are empty or incomplete.
func (m *Machine) explain(f *Frame) {
	if len(f.GPUs) == 0 {
		f.NoGPUs = "No GPU is seen here: stallspan check says why. Jobs have their own time divided."
	}
	if len(f.Disks) == 0 {
		f.NoDisks = "No disk with I/O is seen here: see stallspan check."
	}
	const lookFor = 5 * time.Second // the first processes are found within that
	switch {
	case len(f.Jobs) == 0 && sample.Now().Mono-m.begun < lookFor:
		f.NoJobs = "Looking for processes that work ..."
	case len(f.Jobs) == 0:
		f.NoJobs = "No process of yours works: name one, as in stallspan top train.py."
	}
	if m.hidden > 0 {
		f.Notes = append(f.Notes,
			fmt.Sprintf("processes that cannot be read with these rights: %d, see stallspan check", m.hidden))
	}
	for _, g := range f.GPUs {
		if slices.ContainsFunc(g.Processes, func(h Holder) bool { return h.Name == "" }) {
			f.Notes = append(f.Notes, "not all processes on a GPU are visible, as from within a container: see stallspan check")
			break
		}
	}
	problems := m.builder.monitor.Problems()
	for _, p := range problems[max(0, len(problems)-2):] {
		f.Notes = append(f.Notes, p.Error())
	}
}
