package window

import "time"

// Every number that decides what a report says is here, with its unit, its source and the test that fails when it
// moves: tools/thresholds tries it. docs/verdicts.md has those of the rules; a test compares.

// Thresholds are the limits of the verdict's rule. docs/verdicts.md has the same numbers.
var Thresholds = struct {
	// Busy: gpu_bound from here.
	// Share of GPU time; chosen; TestThresholds.
	Busy float64
	// Stall is the smallest stall that counts.
	// Share of GPU time; chosen; TestThresholds.
	Stall float64
	// Ratio: storage_bound, network_bound or cpu_bound if one stall is this many times any other.
	// Factor; chosen; TestThresholds.
	Ratio float64
	// Other: unknown if the rest of other reaches this, and Ratio times the largest stall.
	// Share of GPU time; chosen; TestThresholds.
	Other float64
	// Slow if storage took more than this.
	// Share of GPU time; chosen; TestThresholds.
	Slow float64
	// Doubt makes a verdict unknown if the ledger is less certain. In short windows, ticks of CPU accounting and late GPU
	// samples leave most of it open.
	// Share of GPU time; chosen; TestThresholds.
	Doubt float64
}{
	Busy:  0.9,
	Stall: 0.15,
	Ratio: 2,
	Other: 0.5,
	Slow:  0.5,
	Doubt: 0.2,
}

// FindingThresholds are the limits from which each finding holds. docs/verdicts.md has the same numbers; a test
// compares.
var FindingThresholds = struct {
	// MinDuration is the shortest window with meaningful means.
	// s; chosen; TestThresholds.
	MinDuration time.Duration

	// TensorBusy: tensor_idle if the GPU was busy for at least this share.
	// Share of time; chosen; TestFindingsAreDocumented.
	TensorBusy float64
	// Tensor: and its tensor cores for less.
	// Share of time; chosen; TestFindingsAreDocumented.
	Tensor float64
	// DRAM: from here its memory is the limit.
	// Share of time; chosen; TestFindingsAreDocumented.
	DRAM float64
	// SM: below this its kernels are too small for it.
	// Share of time; chosen; TestFindingsAreDocumented.
	SM float64

	// Throttled: throttled from here.
	// Share of time; chosen; TestFindingsAreDocumented.
	Throttled float64
	// PowerCap is the same for the power cap, which many healthy GPUs reach,
	// Share of time; chosen; TestFindingsAreDocumented.
	PowerCap float64
	// PowerClock: if the mean clock is at most this share of the highest one.
	// Share of a clock; chosen; TestFindingsAreDocumented.
	PowerClock float64
	// PowerBlind is the same if the clock is not reported.
	// Share of time; chosen; TestFindingsAreDocumented.
	PowerBlind float64

	// HeatingTime: heating is looked for from here.
	// s; chosen; TestHeating.
	HeatingTime time.Duration
	// HeatingDegree is the smallest rise from the first to the last quarter.
	// Degrees Celsius; chosen; TestHeating.
	HeatingDegree float64
	// HeatingPower: and power rose by this.
	// Share of the first quarter; chosen; TestHeating.
	HeatingPower float64
	// HeatingWork: and work rose by no more than this.
	// Share of the first quarter; chosen; TestHeating.
	HeatingWork float64
	// HeatingMargin: and it is at most this below the slowdown temperature.
	// Degrees Celsius; chosen; TestHeating.
	HeatingMargin float64
	// HeatingFrom: or, if that is not reported, at least this hot.
	// Degrees Celsius; chosen; TestHeating.
	HeatingFrom float64

	// GrowthEpochs: memory_grows after so many consecutive epochs, each with more memory than the one before,
	// Count; chosen; TestMemoryGrows.
	GrowthEpochs int
	// Growth: by at least so much,
	// Bytes; chosen; TestMemoryGrows.
	Growth float64
	// GrowthLast: and the last one by at least this share of the mean growth.
	// Share of the mean; chosen; TestFindingsAreDocumented.
	GrowthLast float64

	// FirstBatch: first_batch if the work of an epoch began after this share of it,
	// Share of time; chosen; TestFirstBatch.
	FirstBatch float64
	// FirstBatchTime: and after this time,
	// s; chosen; TestFirstBatch.
	FirstBatchTime time.Duration
	// FirstBatchWork: and there was at most this share of the work of the rest before, for each second.
	// Share of a rate; chosen; TestFirstBatch.
	FirstBatchWork float64
	// FirstBatchRest: and there was work for this share of the rest: what ends an epoch, as a printed line, is no batch.
	// Share of time; chosen; TestBeforeWork.
	FirstBatchRest float64
	// FirstBatchLeast: and for this time at least.
	// s of work; chosen; TestBeforeWork.
	FirstBatchLeast float64
}{
	MinDuration:     2 * time.Second,
	TensorBusy:      0.8,
	Tensor:          0.15,
	DRAM:            0.5,
	SM:              0.5,
	Throttled:       0.05,
	PowerCap:        0.2,
	PowerClock:      0.9,
	PowerBlind:      0.5,
	HeatingTime:     time.Minute,
	HeatingDegree:   5,
	HeatingPower:    0.1,
	HeatingWork:     0.02,
	HeatingMargin:   10,
	HeatingFrom:     80,
	GrowthEpochs:    4,
	Growth:          64 << 20,
	GrowthLast:      0.5,
	FirstBatch:      0.2,
	FirstBatchTime:  time.Second,
	FirstBatchWork:  0.25,
	FirstBatchRest:  0.05,
	FirstBatchLeast: 0.1,
}

// Serving are the limits from which a peer serves data. docs/verdicts.md has the same numbers; a test compares.
var Serving = struct {
	// Bytes received in the window: what is less is no data set and no model.
	// Bytes; chosen; TestThresholds.
	Bytes uint64
	// Ratio is what is received for each byte sent: an exchange among ranks has one.
	// Factor; chosen; TestThresholds.
	Ratio float64
	// Packet is what is received for each message sent, at least: an answer that one packet has room for is no data.
	// Bytes; kernel, MSS of Ethernet; TestThresholds.
	Packet uint64
	// Rate is what is received for each second of waiting: less is an answer of a service that is polled.
	// Bytes/s; chosen; TestThresholds.
	Rate float64
}{
	Bytes:  1 << 20,
	Ratio:  4,
	Packet: 1460,
	Rate:   32 << 10,
}

// The verdict and what it rests on.
const (
	// MinJudged is the shortest window with a verdict. In a shorter one, the start of a program or a few operations
	// decide.
	// s; chosen; TestThresholds.
	MinJudged = 200 * time.Millisecond
	// cpuTick is the resolution of a process's CPU time (USER_HZ = 100). The CPU time of a cgroup is exact.
	// s; kernel; TestThresholds.
	cpuTick = 10 * time.Millisecond
	// maxUnread is the part of a window in which its job had no reading, from which its phases have no ledger.
	// Share of the window; chosen; TestThresholds.
	maxUnread = 0.5
	// covered is the part of a window that evidence of threads covers at least, if the ledger is named after it. The rest
	// is estimated, and adds to the uncertainty.
	// Share of GPU time; chosen; TestPartlyFollowed.
	covered = 0.8
	// lacking is the part of a window that events may leave to moments.
	// Share of GPU time; chosen; TestPartlyFollowed.
	lacking = 0.05
	// deviations of a share from moments are its uncertainty.
	// Standard deviations; chosen; TestPartlyFollowed.
	deviations = 2.0
	// maxReasons is how many reasons for other a report names.
	// Count; chosen; TestThresholds.
	maxReasons = 3
	// minReason is the smallest of them.
	// Share of GPU time; chosen; TestThresholds.
	minReason = 0.005
	// unevenShare: one GPU's busy time differs from another's by more than this, if they are uneven.
	// Share of the window; chosen; TestThresholds.
	unevenShare = 0.1
)

// What is slow.
const (
	// SlowFactor is how many times the usual P95 a window may take.
	// Factor; chosen; TestApplyLimits.
	SlowFactor = 1.5
	// RecentTime is the length of the end of an open window that has a verdict of its own. So a change in a long window
	// shows within seconds, not when it outweighs the hours before.
	// s; chosen; TestThresholds.
	RecentTime = 5 * time.Second
	// minOverlap: two windows overlap if they have at least this part of the shorter one in common.
	// Share of the shorter window; chosen; TestThresholds.
	minOverlap = 0.1
)

// Disks.
const (
	// minMovedShare is the part from which bytes count: of all that disks moved or the job fetched, a disk's, and of what
	// a disk moved, the job's.
	// Share of bytes; chosen; TestThresholds.
	minMovedShare = 0.1
	// maxRead is by how much a program's reads may exceed those of all disks: the readings at both ends may be a tenth of
	// the window off.
	// Factor; chosen; TestThresholds.
	maxRead = 1.1
	// outrun is the ratio to a ceiling from which it was none: the disk had not been asked for more before. A little more
	// than the ceiling is noise.
	// Factor; chosen; TestThresholds.
	outrun = 1.05
	// NearCeiling is the part of a disk's ceiling from which it is the limit.
	// Share of bytes/s; chosen; TestThresholds.
	NearCeiling = 0.8
	// FarCeiling is the part up to which the disk can do much more.
	// Share of bytes/s; chosen; TestThresholds.
	FarCeiling = 0.5
	// startSlack: a process that was seen so long before an epoch began may have been started in it, and a silence that
	// ended so long before a window goes on.
	// s; readings are once a second without a window; TestFirstBatch.
	startSlack = time.Second
	// maxFailing is how many failing disks a report has. The worst are kept.
	// Count; chosen; TestWorstDisksFailing.
	maxFailing = 3
)

// What explains a wait for storage.
const (
	// explained: the operations of a device explain a wait from here, or the time of the device above.
	// Share of the wait; chosen; TestThresholds.
	explained = 0.5
	// unexplained: below this they do not. In between, a hypervisor or the kernel's own work may hide the rest.
	// Share of the wait; chosen; TestThresholds.
	unexplained = 0.25
	// atLimit is the part of the wait or the window that a limit makes the I/O take at least, if it explains it.
	// Share of time; chosen; TestThresholds.
	atLimit = 0.85
	// overLimit: I/O that would take longer did not pass the limit. What is read ahead counts before it passes.
	// Factor; chosen; TestThresholds.
	overLimit = 1.25
	// halfBytes: a device that moved this part of the job's bytes may have served it.
	// Share of bytes; chosen; TestThresholds.
	halfBytes = 0.5
	// same is how far the bytes of a device may be from those of the job, if nothing else used it.
	// Share of bytes; chosen; TestThresholds.
	same = 0.02
)

// Network and FUSE file systems.
const (
	// MaxMountAge is the largest age of the last list of open files for a process that does nothing, such as one that
	// hangs in a read.
	// s; chosen; TestThresholds.
	MaxMountAge = 6 * time.Second
	// MappedShare: a job maps its files if its read calls returned less than this part of what came from the server,
	// Share of bytes; chosen; TestThresholds.
	MappedShare = 0.1
	// MinFetched: and that was at least so much.
	// Bytes; chosen; TestThresholds.
	MinFetched uint64 = 16 << 20
	// minGrown is by which part of its size a file grew in the page cache, if that says how it was read.
	// Share of the size; chosen; TestThresholds.
	minGrown = 0.5
)

// Loads.
const (
	// maxAhead is how far before a load its disks are looked at.
	// s; chosen; TestIdleAhead.
	maxAhead = time.Minute
	// aheadTries is how many lengths of time before a load are tried, each half of the one before.
	// Count; chosen; TestIdleAhead.
	aheadTries = 6
	// maxBusy is the utilization of a disk that has next to nothing to do.
	// Share of time; chosen; TestIdleAhead.
	maxBusy = 0.1
	// maxMemoryShare: a load from memory that moved less than this part of its size cannot have waited for storage,
	// Share of bytes; chosen; TestThresholds.
	maxMemoryShare = 0.01
	// maxMemoryBytes: if that is also less than this.
	// Bytes; chosen; TestThresholds.
	maxMemoryBytes float64 = 4 << 20
	// muchKernel is the part of a load's CPU time in the kernel from which its page faults are named,
	// Share of time; chosen; TestThresholds.
	muchKernel = 0.4
	// minKernel: if that is at least so long, as the kernel counts it in ticks of 10 ms,
	// s; chosen; TestThresholds.
	minKernel = 200 * time.Millisecond
	// maxFault: and not longer for each fault, because then it did something else.
	// s; chosen; TestThresholds.
	maxFault = 50 * time.Microsecond
)

// Peers.
const (
	// similar is the ratio up to which two amounts of bytes are about the same: what comes from one neighbour of a ring of
	// ranks goes on to the other one.
	// Factor; chosen; TestThresholds.
	similar uint64 = 2
	// minServed is the part of all waiting for peers that waiting for those that serve data has, if the replay without
	// any of it says what the window would be without theirs.
	// Share of time; chosen; TestThresholds.
	minServed = 0.8
	// muchAgain is the part of what a job fetched that a limit of memory has to have made it read again.
	// Share of bytes; chosen; TestThresholds.
	muchAgain = 0.25
	// muchGone is the part of what a job fetched that the page cache did not keep, from which on it counts as bypassed.
	// Share of bytes; chosen; TestThresholds.
	muchGone = 0.5
	// minGone: if that is also this much. The counts of each CPU may be half a megabyte late.
	// Bytes; chosen; TestThresholds.
	minGone float64 = 64 << 20
	// silentShare is the part of a window that one has to take that is over.
	// Share of time; chosen; TestThresholds.
	silentShare = 0.1
	// waitsAll is the part of a silence in which the job waited, at least.
	// Share of time; chosen; TestThresholds.
	waitsAll = 0.9
	// trickle is how much other reads may bring while one waits.
	// Bytes; chosen; TestThresholds.
	trickle = 1 << 20
	// hushed is how much of what came in a wait may come in a part of it in which next to nothing came.
	// Share of bytes; chosen; TestThresholds.
	hushed = 0.01
	// silenceEdge is the part of a silence at either end in which a disk that is silent may complete operations.
	// Share of time; chosen; TestThresholds.
	silenceEdge = 0.1
	// idleWorkers is how much CPU time the job may use while it waits for processes that have ended: it looks whether they
	// live, and replaces them.
	// Share of time; chosen; TestThresholds.
	idleWorkers = 0.05
	// beforeWait is how long before such a wait the processes may have ended: what they gave before is used up first.
	// s; chosen; TestThresholds.
	beforeWait = 2 * time.Second
	// helperLives is what a process lives at least that is no helper of a moment.
	// s; chosen; TestThresholds.
	helperLives = time.Second
	// maxPeers is how many peers a report has.
	// Count; chosen; TestThresholds.
	maxPeers = 8
)

// What if. How far off a window's duration without storage may be: docs/internals/schedule.md.
const (
	// moreRequests is how many times as many requests for data of peers are at once, in what WhatIf says of them.
	// Factor; chosen; TestWithRequests.
	moreRequests = 8.0
	// minFed is the smallest part of a window in which the leading thread waits for others that read, if twice as many
	// of these may help.
	// Share of GPU time; chosen; TestThresholds.
	minFed = 0.02
	// minOwn is the smallest part in which it waits for storage itself, if it has no others that read.
	// Share of GPU time; chosen; TestThresholds.
	minOwn = 0.05
	// workDoubt: what runs between two reads runs slower than from memory.
	// Share of the work; measured, make scenarios; TestDurations.
	workDoubt = 0.2
	// guessDoubt is the same without the scheduler's evidence: the kernel's work to fetch data is a part of it.
	// Share of the work; measured, make scenarios; TestThresholds.
	guessDoubt = 0.6
	// sharedDoubt is the same, if all cores worked all the time.
	// Share of the work; measured, make scenarios; TestDurations.
	sharedDoubt = 0.2
	// otherDoubt is what else is not certain.
	// Share of the duration; measured, make scenarios; TestDurations.
	otherDoubt = 0.02
	// edgeDoubt is the part of the time of the GPU or of all cores that is certain: it is measured.
	// Share of time; measured, make scenarios; TestDurations.
	edgeDoubt = 0.98
	// maxSpeedup is the largest one.
	// Factor; chosen; TestDurations.
	maxSpeedup = 1000.0
)

// Stretches of waiting for storage, in a trace view.
const (
	// minStallShare is the smallest storage share of a reading interval that counts.
	// Share of time; chosen; TestStallsIn.
	minStallShare = 0.25
	// longShare is the same in the middle of one long wait: after a short one, the program works.
	// Share of time; chosen; TestThresholds.
	longShare = 0.98
	// minLong: shorter waits are short ones.
	// s; chosen; TestThresholds.
	minLong = 300 * time.Millisecond
	// minStallGap: stretches closer than this are one.
	// s; chosen; TestThresholds.
	minStallGap = 200 * time.Millisecond
	// minStretch: shorter stretches are left out.
	// s; chosen; TestThresholds.
	minStretch = 200 * time.Millisecond
	// minPart: a stretch with short waits is not cut into shorter parts.
	// s; chosen; TestThresholds.
	minPart = time.Second
	// mixedParts is in about how many parts all such stretches of a window are cut.
	// Count; chosen; TestStallsIn.
	mixedParts = 4
	// maxStalls is how many are kept, the longest: each is a row in a trace view.
	// Count; chosen; TestStallsIn.
	maxStalls = 8
)
