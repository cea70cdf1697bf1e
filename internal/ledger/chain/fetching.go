package chain

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// kernelShare learns how much of a thread's work is the kernel's, where it fetches data. The kernel counts user and
// system time in ticks, so that only sums mean something.
type kernelShare struct{ all, system time.Duration } // of time in which it fetched data

// fetching estimates in which share of its running time a thread worked to fetch data. waited is whether it waited for
// storage itself. System time has more than that work: other calls, and interrupts, which are a fifth of all time in an
// emulator. So there is no more of it than what was fetched can take.
func (k *kernelShare) fetching(s *sample.Watched, waited bool) float64 {
	if s.Ran <= 0 || !waited && s.Chars >= mostlyCached*s.Fetched {
		return 0
	}
	k.all, k.system = k.all+s.Ran, k.system+min(s.System, s.Ran)
	if k.all > kernelMemory {
		k.system = time.Duration(float64(k.system) * float64(kernelMemory) / float64(k.all))
		k.all = kernelMemory
	}
	share := (k.system + kernelGuess/2).Seconds() / (k.all + kernelGuess).Seconds()
	kept := float64(s.Chars)*copyCost + float64(s.Fetched-min(s.Fetched, s.Chars))*mapCost // ns
	most := float64(max(s.Fetched, s.Chars)) * maxFetch
	return max(0, min(share-kept/float64(s.Ran), most/float64(s.Ran)))
}
