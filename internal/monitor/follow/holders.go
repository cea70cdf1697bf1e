package follow

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cuda"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	// maxHolders bounds the jobs that are followed because they hold memory of a GPU. The other places are for windows.
	maxHolders = process.MaxJobs - 16
	// holdersAtOnce bounds those that one look begins to follow: each costs a round of readings.
	holdersAtOnce = 8
	holderGone    = 10 * time.Minute // without memory of a GPU and CUDA, after which a living job leaves its place
	// maxUsers bounds the jobs that use CUDA and have held no memory so far, and maxOfOne those of one user or container:
	// any program may open the device.
	maxUsers     = 32
	maxOfOne     = maxUsers / 2
	refusedFor   = 10 * time.Second // a process that found no room is not tried again
	maxAncestors = 64               // of a process that are looked at
)

// holders are the jobs that are followed because they hold memory of a GPU, or use CUDA. Only FollowHolders uses it.
type holders struct {
	search *cuda.Search // for those that use CUDA; nil for none
	byPID  map[int]*holderJob
	listed []int        // processes that hold memory or use CUDA, as listed last
	top    map[int]bool // those without an ancestor among them
	topAt  time.Duration
	looks  int
	// refused are the processes that use CUDA and found no room, until when they are not tried again.
	refused map[int]time.Duration
}

// A name may be found in the background, as that of a pod by the kubelet, and then hardly changes.
const (
	namedSoon  = 10 * time.Second
	namedEvery = 30 // looks
)

// topsEvery is how often ancestors are looked for in a list that stays the same: a parent may end. The driver lists
// processes as often.
const topsEvery = 10 * time.Second

// tops returns the processes of a list without an ancestor in it.
func (h *holders) tops(list []int, now time.Duration, j *Jobs) map[int]bool {
	if h.top == nil || now-h.topAt >= topsEvery || !slices.Equal(list, h.listed) {
		h.top, h.topAt, h.listed = map[int]bool{}, now, list
		parents := map[int]int{} // most processes of a machine have the same ancestors
		for _, pid := range list {
			h.top[j.topmost(pid, list, parents)] = true
		}
	}
	return h.top
}

type holderJob struct {
	job    string
	client string        // the container or user whose process it is
	held   bool          // it holds memory of a GPU, or has held some
	named  time.Duration // since when more may become known of who it is
	used   time.Duration // the last time that it held memory or used CUDA
	alive  time.Duration // the last time that it had a process
}

// Who returns who a process is that holds memory of GPUs, or of none if it only uses CUDA. If group is not "", it
// returns who all processes in that cgroup are, by one of them. A later answer may have more.
type Who func(pid int, group string, gpus []string) sample.JobName

// FollowHolders follows each process that holds memory of a GPU or uses CUDA, with its children, without any
// announcement. Where an ancestor of a process does so, too, or is still followed because it did, it follows that one.
// It leaves out processes of cgroups that are followed. At most 64 are followed at a time, with those cgroups, and 32
// of them without having held memory: these leave their places to those that hold some. Call it from one goroutine,
// once a second; it takes a reading for each new job.
func (j *Jobs) FollowHolders(who Who) {
	if j.sources == nil {
		return
	}
	h := &j.holders
	now := j.readings.Present().Mono
	held := j.readings.HeldGPUs()
	var users []int
	if h.search != nil {
		var err error
		users, err = h.search.Users(now)
		j.problems.Note("jobs", err)
	}
	list := slices.AppendSeq(users, maps.Keys(held))
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), j.isMatched)
	top := h.tops(list, now, j)
	h.drop(now, top, j)
	h.looks++
	for pid, known := range h.byPID {
		if !known.held && j.holdsMemory(known.job, held) {
			known.held, known.named = true, now // its GPU may say whose it is
		}
		if now-known.named < namedSoon || (h.looks+pid)%namedEvery == 0 {
			j.readings.Name(nameOf(who, known.job, pid, held[pid]))
		}
	}
	maps.DeleteFunc(h.refused, func(_ int, until time.Duration) bool { return now >= until })
	added := 0
	for _, pid := range list {
		wait := len(held[pid]) == 0 && now < h.refused[pid]
		if added == holdersAtOnce || wait || !top[pid] || h.byPID[pid] != nil || process.Name(j.root, pid) == server ||
			j.inHolder(pid) {
			continue
		}
		if j.followHolder(pid, held[pid], now, who) {
			added++
		}
	}
}

// inHolder reports whether a process is in a job that is followed because of another process. That one need not hold
// memory or use CUDA any more, or may have ended: as long as its job is followed, its children are of no other.
func (j *Jobs) inHolder(pid int) bool {
	for _, job := range j.readings.JobsOf(pid) {
		for _, known := range j.holders.byPID {
			if known.job == job {
				return true
			}
		}
	}
	for above := range j.ancestors(pid, map[int]int{}) { // it may be younger than the newest reading of its job
		if known := j.holders.byPID[above]; known != nil && known.job == j.JobOf(above) {
			return true
		}
	}
	return false
}

// full reports whether all places are taken.
func (h *holders) full(j *Jobs) bool { return len(h.byPID)+len(j.matched.byPath) >= maxHolders }

// room reports whether there is room for a job that holds memory of a GPU, or only uses CUDA. The latter leaves its
// place to the former.
func (h *holders) room(holds bool, client string, j *Jobs) bool {
	if holds {
		return !h.full(j) || h.leaveUser(j)
	}
	all, own := 0, 0
	for _, known := range h.byPID {
		if !known.held {
			all++
			if known.client == client {
				own++
			}
		}
	}
	return !h.full(j) && all < maxUsers && own < maxOfOne
}

// leaveUser takes the place of the job that has used CUDA for longest and never held memory, and reports whether there
// was one.
func (h *holders) leaveUser(j *Jobs) bool {
	first := 0
	for pid, known := range h.byPID {
		if !known.held && (first == 0 || known.named < h.byPID[first].named) {
			first = pid
		}
	}
	if first == 0 {
		return false
	}
	h.leave(first, j)
	return true
}

// holdsMemory reports whether a process of a job holds memory of a GPU.
func (j *Jobs) holdsMemory(job string, held map[int][]string) bool {
	holds := func(pid int) bool { return len(held[pid]) > 0 }
	return len(held) > 0 && slices.ContainsFunc(j.readings.Processes(job), holds)
}

// followHolder reports whether the process is followed now.
func (j *Jobs) followHolder(pid int, gpus []string, now time.Duration, who Who) bool {
	job := j.JobOf(pid)
	if job == "" {
		return false // it has ended, or is not of this machine's namespace of processes
	}
	name := nameOf(who, job, pid, gpus)
	holds := len(gpus) > 0
	if !j.holders.room(holds, name.Client, j) {
		j.holders.refused[pid] = now + refusedFor
		return false
	}
	// As long as it holds no memory, it is not known which GPU it uses, and its own time is divided.
	wanted := sampling.Job{ID: job, Scope: window.Process, OnlyHeldGPUs: true, OwnTime: !holds, Name: name}
	if err := j.follow("", wanted, pid); err != nil {
		j.problems.Note("jobs", err)
		return false
	}
	j.holders.byPID[pid] = &holderJob{job: job, client: name.Client, held: holds, named: now, used: now, alive: now}
	j.hold(job, true)
	return true
}

// server is the name that the kernel keeps of nvidia-cuda-mps-server: 15 bytes. It holds memory for its clients, which
// are listed, too.
const server = "nvidia-cuda-mps"

// nameOf returns who the job of a process is.
func nameOf(who Who, job string, pid int, gpus []string) sample.JobName {
	name := who(pid, "", gpus)
	name.ID, name.PID = job, pid
	return name
}

// drop unfollows the jobs whose processes have ended or are in a followed cgroup, and those that have neither held
// memory nor used CUDA for long.
func (h *holders) drop(now time.Duration, top map[int]bool, j *Jobs) {
	for pid, known := range h.byPID {
		if j.isMatched(pid) {
			h.leave(pid, j)
			continue
		}
		if top[pid] {
			known.used = now
		}
		if j.readings.HasProcess(known.job) {
			known.alive = now
		}
		if now-known.alive > autoDead || now-known.used > holderGone {
			h.leave(pid, j)
		}
	}
}

func (h *holders) leave(pid int, j *Jobs) {
	job := h.byPID[pid].job
	j.hold(job, false)
	j.Unfollow(job)
	delete(h.byPID, pid)
}

// topmost returns the highest process above one of a list that is in the list, too.
func (j *Jobs) topmost(pid int, list []int, parents map[int]int) (top int) {
	top = pid
	for above := range j.ancestors(pid, parents) {
		if slices.Contains(list, above) {
			top = above
		}
	}
	return top
}

// ancestors returns the processes above one, from its parent on, without init. parents are those that were read.
func (j *Jobs) ancestors(pid int, parents map[int]int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for range maxAncestors {
			parent, known := parents[pid]
			if !known {
				of, _ := process.StatOf(j.root, pid) // 0 for a process that has ended
				parent, parents[pid] = of.Parent, of.Parent
			}
			if parent <= 1 || !yield(parent) {
				return
			}
			pid = parent
		}
	}
}
