package ledger

import "math"

// gpuWaits is how a thread waits for its GPU. Evidence fades.
type gpuWaits struct {
	slept, busy        float64   // s, of the GPU's busy time: as long as the thread slept, and all
	overlap            float64   // s, at least, in which the GPU worked while the thread fetched data
	doubt              float64   // s, by which overlap may be too large: one standard deviation
	spinning, sleeping meanwhile // what the thread does while the GPU works
}

// sleeps reports whether the thread sleeps while the GPU works, and does not spin.
func (w *gpuWaits) sleeps() bool { return w.slept > minAsleep*w.busy }

// queues reports whether the thread gives the GPU work and fetches the next data meanwhile.
func (w *gpuWaits) queues() bool { return w.overlap > minOverlap*w.busy+w.doubt }

// learn uses the times of a block, by class. The GPU worked while the thread fetched data if it was idle for less time
// than that, or if the thread neither ran nor slept for long enough to have waited for it. doubt is how far off the
// times may be.
func (w *gpuWaits) learn(time *[classes]float64, busy, idle, doubt float64) {
	overlap := max(-doubt, time[fetching]-idle, busy-time[computing]-time[waitingGPU]-time[dark])
	w.slept = w.slept*waitsMemory + min(time[waitingGPU], busy)
	w.overlap = w.overlap*waitsMemory + overlap
	w.busy = w.busy*waitsMemory + busy
	w.doubt = math.Hypot(w.doubt*waitsMemory, doubt/2)
}

// share learns in which share of its time the GPU worked while the thread computes and while it sleeps.
func (w *gpuWaits) share(d *division) {
	w.sleeping.learn(d, waitingGPU)
	w.spinning.learn(d, computing)
}

// meanwhile is for how long the GPU worked in one class of what its thread does, in seconds. Evidence fades.
type meanwhile struct{ busy, all float64 }

func (m *meanwhile) learn(d *division, c class) {
	m.busy = m.busy*waitsMemory + d.time[c]*(1-d.idle[c])
	m.all = m.all*waitsMemory + d.time[c]
}

func (m *meanwhile) share() float64 {
	if m.all <= 0 {
		return 0
	}
	return m.busy / m.all
}

// order returns the classes from those in which the GPU is most likely idle. While the thread fetches data, the GPU has
// no work, so that this time is idle first. Sleeping that is longer than the GPU worked is idle for certain. What is
// left is work. If the program queues work for the GPU, the GPU may be idle in any part of what the thread does besides
// waiting for it.
func (w *gpuWaits) order() [][]class {
	switch {
	case w.queues():
		return ofQueue
	case w.sleeps():
		return ofSleep
	}
	return ofSpinning
}

// What order returns. They do not change.
var (
	ofQueue    = [][]class{{fetching, computing}, {waiting}, {dark}, {queued}, {waitingGPU}}
	ofSleep    = [][]class{{fetching}, {waiting}, {dark}, {computing}, {waitingGPU}}
	ofSpinning = [][]class{{fetching}, {waiting}, {dark}, {waitingGPU}, {computing}}
)
