// Package ledger divides the time of jobs on GPUs into busy, storage stall, CPU stall and other. It reads the history
// and adds running totals to it.
package ledger

// Target is what one ledger accounts for: one job on one GPU.
type Target struct {
	Job      string // "" for the whole machine
	Pressure string // the sample.Pressure scope that contains the job
	Own      bool   // that scope contains this job and nothing else
	GPU      string // hw.id; "" without a GPU

	// Remote: the job has had files open that are on no disk of this machine. It may become true later.
	Remote bool

	// Leader is the thread that drives the GPU, or the first thread of the program; 0 if unknown. It may change.
	Leader int
}

// ID returns the key of the target's columns in the history.
func (t Target) ID() string { return ID(t.Job, t.GPU) }

// same reports whether both are the same job on the same GPU. Remote and Leader may differ.
func (t Target) same(as Target) bool {
	t.Remote, t.Leader = as.Remote, as.Leader
	return t == as
}

// ID returns the key of the ledger of one job on one GPU.
func ID(job, gpu string) string { return job + "\x00" + gpu }
