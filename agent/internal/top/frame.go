// Package top is the live view of a machine: its GPUs, its disks, its jobs with their ledgers, and the windows that
// programs announce.
package top

import (
	"time"

	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Recent is the length of the ledger that a job has besides the one since it is watched.
const Recent = 10 * time.Second

// Frame is what is known of a machine at one moment. It is immutable: the view keeps frames as the history of what it
// draws.
type Frame struct {
	At    time.Time // wall time
	Host  string
	Cores int // number of cores that were read

	CPU         float64        // share of the time of all cores with work; -1 if unknown
	BusiestCore *stat.Core     // nil if unknown
	Pressure    *stat.Pressure // nil without PSI

	GPUs    []GPU
	Disks   []Disk
	Jobs    []Job
	Windows []Window

	// Why lists are empty or incomplete, one line each, with what to do.
	NoGPUs, NoDisks, NoJobs, NoWindows string
	Notes                              []string
}

// GPU is a GPU with the processes that hold its memory.
type GPU struct {
	stat.GPU
	Processes []Holder
}

// Holder is a process that holds memory of a GPU.
type Holder struct {
	PID    int
	Name   string // "" if it is not visible here
	Memory uint64 // bytes
	Has    bool   // Memory is known
}

// Disk is a disk with its ceilings, in bytes per second; 0 if unknown.
type Disk struct {
	stat.Disk
	ReadCeiling, WriteCeiling float64
}

// Job is a process with its children.
type Job struct {
	ID    string
	PID   int // of its first process; 0 if unknown
	Name  string
	Ended bool

	Watched   time.Duration // the time that Whole is about
	CPU       float64       // cores in use; -1 if unknown
	Read      float64       // bytes per second from storage
	Write     float64
	HasIO     bool // Read and Write are known
	Processes int
	Members   []Member // the processes that do most, and then those that started them
	Holds     int      // number of GPUs on which its processes hold memory

	Recent, Whole Ledger
}

// Member is a process of a job.
type Member struct {
	PID    int
	Parent int // 0 if unknown
	Name   string
	CPU    float64 // cores in use
	Read   float64 // bytes per second from storage
}

// Ledger is a report as the view shows it: shares from 0 to 1 of the time that it divides, and its sentences.
type Ledger struct {
	Length  time.Duration
	Split   bool // the shares are known
	GPUs    int  // 0 if the program's own time is divided
	Busy    float64
	Storage float64
	CPU     float64 // without a GPU, the time on a CPU
	Ready   float64 // without a GPU, the time without a core; with one it is a part of CPU
	Other   float64

	Verdict  window.Verdict
	Finding  string
	Remedy   string
	Also     []explain.FurtherFinding
	Reasons  []string // of Other, the largest first
	Evidence string   // what it was made from, and what would give more
	Disks    []DiskUse
}

// DiskUse is what a disk did, for any process.
type DiskUse struct {
	Name  string
	Read  float64 // bytes per second
	Write float64
	Queue *float64      // nil if unknown
	Await time.Duration // of a read; 0 without one
}

// newLedger takes from a report what the view shows.
func newLedger(r *window.Report) Ledger {
	l := Ledger{Length: r.Duration(), Split: r.Split, GPUs: len(r.GPUIDs), Verdict: r.Verdict,
		Finding: explain.Finding(r), Remedy: explain.Remedy(r), Also: explain.FurtherFindings(r),
		Evidence: explain.EvidenceOf([]*window.Report{r})}
	if total := r.GPUTime().Seconds(); r.Split && total > 0 {
		l.Busy, l.Storage = r.Busy.Seconds()/total, r.Storage.Seconds()/total
		l.CPU, l.Other = r.CPU.Seconds()/total, r.Other.Seconds()/total
		if l.GPUs == 0 {
			l.Ready = r.Ready.Seconds() / total
			l.CPU -= l.Ready
		}
		l.Reasons = explain.Reasons(r)
	}
	seconds := r.Duration().Seconds()
	for i := range r.Disks {
		d := &r.Disks[i]
		use := DiskUse{Name: d.Name, Read: float64(d.ReadBytes) / seconds, Write: float64(d.WriteBytes) / seconds,
			Queue: sample.Known(d.QueueDepth, d.Lacks&sample.LacksQueue == 0)}
		if await, ok := d.Await(true); ok {
			use.Await = time.Duration(await * float64(time.Second))
		}
		l.Disks = append(l.Disks, use)
	}
	return l
}

// lost is the share of the time in which a job did not get on: the default order of jobs. Without a GPU it is what the
// job waited for storage, and then a little for its work, so that sleeping programs come last.
func (l *Ledger) lost() float64 {
	switch {
	case !l.Split:
		return 0
	case l.GPUs > 0:
		return 1 - l.Busy
	}
	return l.Storage + (l.CPU+l.Ready)/5
}

// Window is a window that a program announced.
type Window struct {
	*explain.Report
	From string // where it is known from: "agent", "run 4711"
	Open bool
}

// ledger is the window's as the table shows it.
func (w *Window) ledger() (l Ledger) {
	total := w.GPUTime()
	if w.Stall == nil || total <= 0 {
		return l
	}
	l = Ledger{Split: true, Storage: w.Stall.Storage / total, Other: w.Stall.Other / total}
	if w.GPU != nil {
		l.GPUs, l.Busy = max(1, len(w.GPU.IDs)), w.GPU.Busy/total
	}
	if w.Stall.CPU != nil {
		l.CPU = (*w.Stall.CPU + w.Stall.Ready) / total
	} else if w.Process != nil {
		l.CPU, l.Ready = w.Process.OnCPU/total, w.Stall.Ready/total
	}
	return l
}

// shownWindows bounds the windows of a frame: the newest ones.
const shownWindows = 40

// shownDisks and shownGPUs bound what a frame keeps of a large machine.
const (
	shownDisks   = 256
	shownGPUs    = 128
	shownMembers = 16
	shownHolders = 8
)
