package chain

import "time"

// Every number that decides what the time of a thread counts as is here, with its unit, its source and the test that
// fails when it moves: tools/thresholds tries it. Bounds of memory are where they are used.

// Sleeps of a thread that looks after others.
const (
	// longSleep: one sleep for nothing but a time is enough from here: no step of a program takes as long.
	// s; chosen; TestThresholds.
	longSleep = time.Second
	// minLooks is how many sleeps in a row, for nothing but a time, are enough.
	// Count; chosen; TestThresholds.
	minLooks = 3
	// minPolls is the same, if one of them might have ended earlier.
	// Count; chosen; TestThresholds.
	minPolls = 2
	// lookShare of the sleep before is what a look may take. It may take maxLook in any case.
	// Share of time; chosen; TestThresholds.
	lookShare = 0.05
	// maxLook is the longest work between two naps that is only a look.
	// s; chosen; TestThresholds.
	maxLook = time.Millisecond
	// fewWork is the most work of a process that does nothing but sleep.
	// s; chosen; TestThresholds.
	fewWork = 100 * time.Millisecond
)

// Who ends a sleep.
const (
	// minCut: sleeps that a signal ends and that are shorter do not matter.
	// s; chosen; TestThresholds.
	minCut = 100 * time.Millisecond
	// exitTime is from such a signal to the end of the thread, which returns its memory.
	// s; chosen; TestThresholds.
	exitTime = time.Second
	// joinPatience: a lock that takes longer is hardly what the last one was.
	// s; chosen; TestThresholds.
	joinPatience = time.Second
	// recently is in which time a thread was active that may end a sleep.
	// s; chosen; TestThresholds.
	recently = time.Second
	// standInSlice is the time that one thread stands in for an unknown cause.
	// s; chosen; TestThresholds.
	standInSlice = 50 * time.Millisecond
	// pollingNaps is how many sleeps a thread that polls has in a sleep that it ends,
	// Count; chosen; TestThresholds.
	pollingNaps = 3
	// pollingShare: and which part of that sleep they take.
	// Share of time; chosen; TestThresholds.
	pollingShare = 0.5
	// muchLess: what a thread does between two sleeps is no step of it, if it is less than this part of the mean.
	// Share of time; chosen; TestThresholds.
	muchLess = 0.5
	// maxRunning is the longest time that a thread runs without leaving its CPU once, where it is not known since when it
	// runs.
	// s; chosen; TestThresholds.
	maxRunning = time.Second
)

// Work, and who causes it.
const (
	// maxUnproved is the longest work of a thread between two wake-ups of others. Beyond it, it spins.
	// s; chosen; TestThresholds.
	maxUnproved = 100 * time.Millisecond
	// minSlice is the shortest time for which the scheduler leaves a CPU to a thread that works all the time, unless one
	// with a higher priority wants it. Who serves a request is done sooner, and a thread that wakes up and finds a core
	// runs sooner.
	// s; kernel, base_slice_ns for one CPU; TestThresholds.
	minSlice = 700 * time.Microsecond
	// inFlight is how long a request may be served after the job requested data, or waited for them.
	// s; chosen; TestThresholds.
	inFlight = 10 * time.Millisecond
	// stealMemory is the running time over which the evidence of what the hypervisor steals fades.
	// s; chosen; TestThresholds.
	stealMemory = 10 * time.Second
	// coldPause is the shortest pause after which a thread runs slower, for it finds less of its code and data in the
	// caches.
	// s; measured, lab/after-pause.py; TestThresholds.
	coldPause = time.Millisecond
	// coldWork is how much running after it is slower.
	// s; measured, lab/after-pause.py; TestWorkAfterPause.
	coldWork = 10 * time.Millisecond
	// coldShare is by how much. It depends on the program, and no counter of a virtual machine shows it: this is what
	// other kinds of work have in the middle.
	// Share of running; measured, lab/after-pause.py; TestWorkAfterPause.
	coldShare = 0.1
)

// Work of the kernel to fetch data.
const (
	// recentTime is the running time over which the share of fetching fades.
	// s; chosen; TestThresholds.
	recentTime = 20 * time.Millisecond
	// kernelMemory is the same, where only ticks say how long the kernel worked.
	// s; chosen; TestThresholds.
	kernelMemory = 2 * time.Second
	// kernelGuess is the weight of the guess that this is half of the time.
	// s; chosen; TestThresholds.
	kernelGuess = 40 * time.Millisecond
	// copyCost is the work to copy a byte out of the page cache, which stays with the data in memory.
	// ns; chosen; TestThresholds.
	copyCost = 0.2
	// mapCost is the work to map a byte's page, which stays, too.
	// ns; chosen; TestThresholds.
	mapCost = 0.03
	// maxFetch is the largest work of the kernel to fetch a byte: 200 us for a page. Real storage takes a tenth.
	// ns; chosen; TestThresholds.
	maxFetch = 50.0
	// mostlyCached times as many bytes as storage delivered: nearly all were in memory.
	// Factor; chosen; TestThresholds.
	mostlyCached uint64 = 8
	// crowdTime is for how long what is seen of a crowd of threads counts.
	// s; chosen; TestCrowdForgets.
	crowdTime = 2 * time.Second
	// crowdSeen is how many of them have to be seen running, until older moments do not count.
	// Count; chosen; TestCrowdForgets.
	crowdSeen = 10
	// fetchShare is the part of the time in the kernel of a thread that reads, in which it fetches data. The rest maps
	// memory, copies and passes results on; no counter has them apart.
	// Share of time; chosen; TestThresholds.
	fetchShare = 0.5
)

// Looks at random moments.
const (
	// silence is for how long a thread may not be seen until what it does is unknown.
	// s; chosen; TestSilence.
	silence = 3 * time.Second
	// maxAhead is by how much counted time may be ahead of the time that passed: the kernel adds it in steps.
	// s; chosen; TestThresholds.
	maxAhead = 50 * time.Millisecond
	// slack is how much later than the newest event an edge may be: its sources are read one after another.
	// s; chosen; TestThresholds.
	slack = time.Millisecond
	// frameTime is over which time the slower one of a leading thread and those that feed it is found.
	// s; chosen; TestThresholds.
	frameTime = time.Second
	// feeds is the part of a frame that the leading thread waits for others that read, from which these are slower.
	// Share of time; chosen; TestThresholds.
	feeds = 0.05
)

// Handovers of a batch.
const (
	// MinPause is the shortest wait that counts, and the shortest time between two handovers. A thread of Python waits for
	// the global lock in pieces of 5 ms, at any time of a step.
	// s; chosen; TestThresholds.
	MinPause = 8 * time.Millisecond
	// startsFor is how long after the start of a process a thread begins that has to do with it.
	// s; chosen; TestThresholds.
	startsFor = time.Second
	// passingTime is the most work for passing on what to do.
	// s; chosen; TestThresholds.
	passingTime = 5 * time.Millisecond
	// maxGiven: a thread that ends so many pauses of the leader for each of its own that the leader ended hands something
	// back, and does not only pass on.
	// Factor; chosen; TestThresholds.
	maxGiven = 1.0 / 3
	// asksFor is how long a thread of the same process brings data after it has read some.
	// s; chosen; TestThresholds.
	asksFor = 30 * time.Second
)
