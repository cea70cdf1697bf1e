package follow

import (
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	// maxHolders bounds the jobs that are followed because they hold memory of a GPU. The other places are for windows.
	maxHolders = process.MaxJobs - 16
	// holdersAtOnce bounds those that one look begins to follow: each costs a round of readings.
	holdersAtOnce = 8
	holderGone    = 10 * time.Minute // without memory of a GPU, after which a living job leaves its place
	maxAncestors  = 64               // of a process that are looked at
)

// holders are the jobs that are followed because they hold memory of a GPU. Only FollowHolders uses it.
type holders struct {
	byPID  map[int]*holderJob
	listed []int        // processes that hold memory, as listed last
	top    map[int]bool // those without an ancestor among them
	topAt  time.Duration
	looks  int
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
			h.top[j.ancestor(pid, list, parents)] = true
		}
	}
	return h.top
}

type holderJob struct {
	job   string
	began time.Duration
	held  time.Duration // the last time that it held memory
	alive time.Duration // the last time that it had a process
}

// Who returns who a process is that holds memory of GPUs. If group is not "", it returns who all processes in that
// cgroup are, by one of them. A later answer may have more.
type Who func(pid int, group string, gpus []string) sample.JobName

// FollowHolders follows each process that holds memory of a GPU, with its children, without any announcement. Where an
// ancestor of a process holds memory, too, it follows that one. It leaves out the processes of cgroups that are
// followed. At most 64 are followed at a time, with those cgroups. Call it from one goroutine, once a second; it takes
// a reading for each new job.
func (j *Jobs) FollowHolders(who Who) {
	if j.sources == nil {
		return
	}
	h := &j.holders
	now := j.readings.Present().Mono
	held := j.readings.HeldGPUs()
	list := slices.Sorted(maps.Keys(held))
	list = slices.DeleteFunc(list, j.isMatched)
	top := h.tops(list, now, j)
	h.drop(now, top, j)
	h.looks++
	for pid, known := range h.byPID {
		if now-known.began < namedSoon || (h.looks+pid)%namedEvery == 0 {
			j.readings.Name(nameOf(who, known.job, pid, held[pid]))
		}
	}
	added := 0
	for _, pid := range list {
		full := len(h.byPID)+len(j.matched.byPath) >= maxHolders || added == holdersAtOnce
		if full || !top[pid] || h.byPID[pid] != nil || j.isServer(pid) {
			continue
		}
		if j.followHolder(pid, held[pid], now, who) {
			added++
		}
	}
}

// followHolder reports whether the process is followed now.
func (j *Jobs) followHolder(pid int, gpus []string, now time.Duration, who Who) bool {
	job := j.JobOf(pid)
	if job == "" {
		return false // it has ended, or is not of this machine's namespace of processes
	}
	wanted := sampling.Job{ID: job, Scope: window.Process, OnlyHeldGPUs: true, Name: nameOf(who, job, pid, gpus)}
	if err := j.follow("", wanted, pid); err != nil {
		j.problems.Note("jobs", err)
		return false
	}
	if j.holders.byPID == nil {
		j.holders.byPID = map[int]*holderJob{}
	}
	j.holders.byPID[pid] = &holderJob{job, now, now, now}
	j.hold(job, true)
	return true
}

// server is the name that the kernel keeps of nvidia-cuda-mps-server: 15 bytes.
const server = "nvidia-cuda-mps"

// isServer reports whether a process is the server of MPS. It holds memory for its clients, which are listed, too.
func (j *Jobs) isServer(pid int) bool {
	return j.command(pid) == server
}

// nameOf returns who the job of a process is.
func nameOf(who Who, job string, pid int, gpus []string) sample.JobName {
	name := who(pid, "", gpus)
	name.ID, name.PID = job, pid
	return name
}

// drop unfollows the jobs whose processes have ended or are in a followed cgroup, and those that have not held memory
// for long.
func (h *holders) drop(now time.Duration, top map[int]bool, j *Jobs) {
	for pid, known := range h.byPID {
		if j.isMatched(pid) {
			h.leave(pid, j)
			continue
		}
		if top[pid] {
			known.held = now
		}
		if j.readings.HasProcess(known.job) {
			known.alive = now
		}
		if now-known.alive > autoDead || now-known.held > holderGone {
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

// ancestor returns the topmost process above one of a list that is in the list, too. parents are those that were read.
func (j *Jobs) ancestor(pid int, list []int, parents map[int]int) (top int) {
	top = pid
	for range maxAncestors {
		parent, known := parents[pid]
		if !known {
			parent, _ = process.Parent(j.root, pid) // 0 for a process that has ended
			parents[pid] = parent
		}
		if parent <= 1 {
			return top
		}
		if slices.Contains(list, parent) {
			top = parent
		}
		pid = parent
	}
	return top
}
