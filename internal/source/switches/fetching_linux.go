package switches

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	kernelMemory = 2 * time.Second // of running time; older evidence fades
	kernelGuess  = 40 * time.Millisecond

	// This work of the kernel stays with the data in memory, in ns for a byte.
	copyCost = 0.2  // to copy it out of the page cache
	mapCost  = 0.03 // to map its page
)

// kernelShare learns how much of a thread's work is the kernel's, where it fetches data. The kernel counts user and
// system time in ticks, so that only sums mean something.
type kernelShare struct {
	user, system time.Duration // of runs that fetched data
	faulted      bool          // the last pause was for a page that storage had to deliver
}

// fetching estimates how long a thread worked to fetch data, in a run that ends with e. all is the share of its job.
func (k *kernelShare) fetching(all *kernelShare, ran, user, system time.Duration, e *sample.ThreadEvent) time.Duration {
	faults := e.IOWait && e.Syscall == sample.NoSyscall
	fetched := e.Fetched > 0 || faults || k.faulted
	k.faulted = faults
	if !fetched || ran <= 0 {
		return 0
	}
	k.add(user, system)
	all.add(user, system)
	// The job's other threads stand in until this one is known.
	weight := min(1, (k.user+k.system).Seconds()/(4*kernelGuess).Seconds())
	share := k.of()*weight + all.of()*(1-weight)
	kept := float64(e.Chars)*copyCost + float64(e.Fetched-min(e.Fetched, e.Chars))*mapCost // ns
	return time.Duration(max(0, share*float64(ran)-kept))
}

func (k *kernelShare) add(user, system time.Duration) {
	k.user += user
	k.system += system
	if sum := k.user + k.system; sum > kernelMemory {
		kept := float64(kernelMemory) / float64(sum)
		k.user, k.system = time.Duration(float64(k.user)*kept), time.Duration(float64(k.system)*kept)
	}
}

func (k *kernelShare) of() float64 {
	return (k.system + kernelGuess/2).Seconds() / (k.user + k.system + kernelGuess).Seconds()
}
