package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// Every number that decides how time is divided is here, with its unit, its source and the test that fails when it
// moves: tools/thresholds tries it. Those of what threads waited for are in package chain.

// Cells and blocks: the stretches in which time is divided.
const (
	// maxCell is the longest stretch that is divided in one piece. A cell has only sums, so a longer one would mistake
	// waiting and idleness that took turns for waiting and idleness that coincided.
	// s; chosen; TestThresholds.
	maxCell = 100 * time.Millisecond
	// maxBacklog is the longest stretch that is divided in cells. A longer one had no readings in it.
	// s; chosen; TestThresholds.
	maxBacklog = time.Minute
	// recallFine: of a job that was read before it became a target, cells older than this are recallCell long.
	// s; chosen; TestThresholds.
	recallFine = 50 * time.Second
	// recallCell: its readings from then are a second apart.
	// s; chosen; TestThresholds.
	recallCell = 950 * time.Millisecond
	// minBlock is the shortest stretch in which the GPU's busy time is compared with what the threads did. The driver's
	// samples are up to 1/6 s long, and neither their ends nor the scheduler's events are where the steps end. In a
	// shorter stretch such differences would be taken for idle time without a cause.
	// s; chosen; TestThresholds.
	minBlock = time.Second
	// minSampled is the same of pieces that are made from moments: fewer would take chance for idle time without a cause.
	// s; chosen; TestThresholds.
	minSampled = 4 * time.Second
	// minKnown is how long to learn how the thread waits for its GPU before the first block is divided.
	// s; chosen; TestThresholds.
	minKnown = 3 * time.Second
	// patience is how long to wait for the end of a sleep, which shows what the thread slept for.
	// s; chosen; TestThresholds.
	patience = 2 * time.Second
)

// When time is divided.
const (
	// collects: where jobs are read once a second, no window needs their time at once. Then it is divided when so much has
	// come together: each block is made once, and not also before it is complete.
	// s; chosen; TestThresholds.
	collects = 3 * time.Second
	// readRarely is the time between two readings of jobs, at least, where that is so.
	// s; chosen; TestThresholds.
	readRarely = 500 * time.Millisecond
	// readRarer is how many times as often the machine is read then, at least.
	// Factor; chosen; TestThresholds.
	readRarer = 2.0
	// maxSilence is how far a source may be behind that is read at every tick. Beyond it, nothing may be left to read: no
	// job, for example.
	// s; chosen; TestThresholds.
	maxSilence = 2 * time.Second
)

// How a block is divided.
const (
	// minExpected is the part of a stretch's idle time that is in the classes where it is expected, at least.
	// Share of idle time; chosen; TestThresholds.
	minExpected = 0.1
	// minSlack is for steps of the program whose ends the thread notices late.
	// s; chosen; TestThresholds.
	minSlack = 5 * time.Millisecond
	// waitsMemory is the weight of what was learned before a block.
	// Factor; chosen; TestThresholds.
	waitsMemory = 0.7
	// minOverlap: a program that queues work for its GPU and goes on has at least so much overlap of both.
	// Share of the GPU's busy time; chosen; TestThresholds.
	minOverlap = 0.15
	// minAsleep: a thread sleeps while the GPU works, and does not spin, if it sleeps for more than this.
	// Share of the GPU's busy time; chosen; TestThresholds.
	minAsleep = 0.5
)

// Estimates from counters.
const (
	// sharedIOTime is how long a job's last I/O explains pressure that the job shares with others. A single long read is
	// counted only when it returns.
	// s; chosen; TestThresholds.
	sharedIOTime = time.Second
	// maxLogBytes is the largest number of bytes written in a cell that counts as a log. No process waits for a log.
	// Bytes; chosen; TestThresholds.
	maxLogBytes float64 = 64 << 10
	// ownDisk is the part of a job's bytes that a disk read in the same time, at least, if the job may have read from it:
	// the job's bytes count when a read begins, the disk's when it ends.
	// Share of bytes; chosen; TestThresholds.
	ownDisk = 0.5
)

// Names of what threads waited for.
const (
	// fading is the weight of what was learned before a block: blocks of a second fade in minutes.
	// Factor; chosen; TestThresholds.
	fading = 0.998
	// MinHold is the shortest wait in which storage or a peer counts as silent. A disk that starts up takes longer.
	// s; chosen; TestThresholds.
	MinHold = 3 * time.Second
	// looks is the part of a wait for other threads in which the waiting one may look whether they live.
	// Share of time; chosen; TestThresholds.
	looks = 0.01
	// mostly is the part of a kind's time from which its largest reason stands for all.
	// Share of time; chosen; TestThresholds.
	mostly = 0.8
)

// Steps of a training's loop.
const (
	// minSteps is the fewest steps whose period is known.
	// Count; chosen; TestThresholds.
	minSteps = 6
	// minStay is how many rounds a worker process takes part in at least, in the mean.
	// Count; chosen; TestThresholds.
	minStay = 2
	// minStep is the shortest period. Below it, the parts of a handover look like steps.
	// s; chosen; TestThresholds.
	minStep = 5 * chain.MinPause
	// sureOfSteps is the confidence from which steps are reported.
	// Confidence; chosen; TestThresholds.
	sureOfSteps = 0.8
	// agree is by how much the two kinds of handovers may differ. A missing or a further one makes it more.
	// Share of the period; chosen; TestThresholds.
	agree = 0.2
	// longestPattern is the largest number of unlike rounds that may be one step.
	// Count; chosen; TestThresholds.
	longestPattern = 8
	// minPattern is how often a pattern has to repeat.
	// Count; chosen; TestThresholds.
	minPattern = 3
	// alikeRounds: rounds from the period divided by this to the period times this are alike.
	// Factor; chosen; TestThresholds.
	alikeRounds = 2.0
	// oneBatch: what is closer together than this part of the rounds that take most time belongs to one batch.
	// Share of a gap; chosen; TestThresholds.
	oneBatch = 0.2
	// pauses is the part of the gaps, the longest, that does not count: a pause may be longer than all steps.
	// Share of gaps; chosen; TestThresholds.
	pauses = 0.05
	// fewRounds is the doubt of rounds that are all the same. Many make it less.
	// Confidence; chosen; TestThresholds.
	fewRounds = 0.15
	// unlikeRounds: rounds that differ less from the one before do not alternate.
	// Share of the period; chosen; TestThresholds.
	unlikeRounds = 0.1
	// patternShare: rounds alternate if they differ from those of a pattern by less than this part of that.
	// Share of a difference; chosen; TestThresholds.
	patternShare = 0.5
)
