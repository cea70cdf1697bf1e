package ledger

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzSplit feeds a cell with anything: the parts are never negative, never exceed the cell, and busy time is not
// explained away.
func FuzzSplit(f *testing.F) {
	f.Add(0.1, 0.04, 0.05, 1.0, 0.1, 0.03, 0.0, 0.0, 0.0, true, true, true, false)
	f.Add(0.1, 0.0, 0.1, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, true, true, true, true)
	f.Add(0.1, 0.2, 0.2, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, false, false, true, true)
	f.Add(0.1, 0.05, 0.09, 0.1, 0.3, 0.1, 0.05, 0.4, 0.1, true, true, true, true)
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, true, false, false, false)
	f.Fuzz(func(t *testing.T, dt, busy, some, scopeCPU, queued, jobCPU, leading, reading, working float64, gpu, pressure,
		ownIO, spins bool) {
		for _, v := range []float64{dt, busy, some, scopeCPU, queued, jobCPU, leading, reading, working} {
			if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e12 {
				t.Skip("not a possible reading") // differences of counters, clamped by the history
			}
		}
		c := cell{dt: dt, busy: busy, some: some, scopeCPU: max(0, scopeCPU), queued: queued, jobCPU: jobCPU,
			leading: leading, leaders: 1, reading: reading, working: working, spins: spins, overlap: clamp(leading, 0,
				busy), hasGPU: gpu, hasPressure: pressure, ownIO: ownIO}
		got := c.split()
		b, s, p := got.busy, got.storage, got.cpu
		const slack = 1e-9
		if b < 0 || s < 0 || p < 0 || b+s+p > max(0, dt)*(1+slack) {
			t.Fatalf("%+v was split into %v, %v, %v", c, b, s, p)
		}
		if gpu && dt > 0 && math.Abs(b-clamp(busy, 0, dt)) > slack*dt {
			t.Fatalf("%+v: busy came out as %v", c, b)
		}
		if got.gain < s*(1-slack)-slack*max(0, dt) || got.gain+got.room > max(0, dt-b)*(1+slack) || got.could < 0 ||
			got.room < -slack {
			t.Fatalf("%+v: %v would be gained of %v that waited for storage, and the smaller one of %v and %v", c, got.gain,
				s, got.could, got.room)
		}
		if !ownIO && s != 0 {
			t.Fatalf("%+v: another process's waiting counted", c)
		}
	})
}

// TestPSIWait compares PSI's weighting with cases that were measured on a real kernel.
func TestPSIWait(t *testing.T) {
	for _, c := range []struct {
		name           string
		some, scopeCPU float64 // a second each
		jobCPU         float64 // below zero in the job's own cgroup, where it is not known
		want, within   float64
	}{
		{"a reader alone, 99 % inside read()", 0.90, 0.09, -1, 0.90, 0.01},
		{"the same with one busy thread", 0.45, 1.0, -1, 0.82, 0.01},
		{"the same with a busy thread of another job", 0.45, 1.09, 0.09, 0.91, 0.01},
		{"a reader that works half of its time, with another busy job", 0.25, 1.5, 0.5, 0.5, 0.01},
		{"no process waits, with another busy job", 0, 1, 0, 0, 0},
		{"one that waits half of its time and works the other half", 0.5, 0.5, -1, 0.5, 0.01},
		{"two that wait all the time and two that work", 0.5, 2.0, -1, 1, 0.01},
		{"no process waits", 0, 1, -1, 0, 0},
		{"all processes wait", 1, 0, -1, 1, 0},
	} {
		got := cell{dt: 1, some: c.some, scopeCPU: c.scopeCPU, jobCPU: c.jobCPU, shared: c.jobCPU >= 0, hasPressure: true,
			ownIO: true}.psiWait()
		if math.Abs(got-c.want) > c.within {
			t.Errorf("%s: %.3f, want %.3f", c.name, got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name               string
		cell               cell
		busy, storage, cpu float64
	}{
		{"idle while the loader waits", cell{dt: 1, busy: 0.4, some: 0.6, scopeCPU: 0.1, jobCPU: 0.1, hasGPU: true, hasPressure: true, ownIO: true}, 0.4, 0.6, 0},
		{"idle while the loader decodes", cell{dt: 1, busy: 0.4, some: 0, scopeCPU: 1, jobCPU: 1, hasGPU: true, hasPressure: true, ownIO: true}, 0.4, 0, 0.6},
		{"heavy I/O with a busy GPU", cell{dt: 1, busy: 1, some: 0.9, scopeCPU: 0.5, jobCPU: 0.5, hasGPU: true, hasPressure: true, ownIO: true}, 1, 0, 0},
		{"idle without an explanation", cell{dt: 1, busy: 0.2, hasGPU: true, hasPressure: true, ownIO: true}, 0.2, 0, 0},
		{"no GPU, half CPU and half waiting", cell{dt: 1, some: 0.5, scopeCPU: 0.5, jobCPU: 0.5, hasPressure: true, ownIO: true}, 0, 0.5, 0.5},
		{"a kernel without PSI, by the queue", cell{dt: 1, busy: 0.5, queued: 0.45, hasGPU: true, ownIO: true}, 0.5, 0.45, 0},
		{"a queue of other jobs", cell{dt: 1, busy: 0.5, queued: 0.45, hasGPU: true}, 0.5, 0, 0},
	} {
		got := c.cell.split()
		busy, storage, cpu := got.busy, got.storage, got.cpu
		if math.Abs(busy-c.busy)+math.Abs(storage-c.storage)+math.Abs(cpu-c.cpu) > 0.01 {
			t.Errorf("%s: %.2f %.2f %.2f, want %.2f %.2f %.2f", c.name, busy, storage, cpu, c.busy, c.storage, c.cpu)
		}
	}
}

func TestStarvedPipelineIsCPUBound(t *testing.T) {
	c := cell{dt: 1, busy: 0.3, jobCPU: 0.2, starved: 0.5, scopeCPU: 0.2, hasGPU: true, hasPressure: true, ownIO: true}
	if got, want := c.split(), (parts{busy: 0.3, cpu: 0.7}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFetchingIsStorage(t *testing.T) {
	c := cell{dt: 1, busy: 0.4, some: 0.4, scopeCPU: 0.25, jobCPU: 0.25, fetching: 0.15, leaderFetching: 0.15,
		hasGPU: true, hasPressure: true, ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.55) > 1e-9 || math.Abs(got.cpu-0.05) > 1e-9 {
		t.Errorf("got %+v, want 0.55 for storage and what idle time is left for the CPU", got)
	}
}

// TestReadAhead divides the GPU's waiting for threads that read and decode in turn.
func TestReadAhead(t *testing.T) {
	gpu := func(c cell) cell {
		c.dt, c.hasGPU, c.hasPressure, c.ownIO = 1, true, true, true
		return c
	}
	for _, c := range []struct {
		name               string
		cell               cell
		storage, cpu, gain float64
	}{
		// 10 ms of reading and 5 ms of decoding a record, 8 ms of computing: 15 ms a step, 8 ms from memory.
		{"one worker", gpu(cell{busy: 8. / 15, some: 2. / 3, scopeCPU: 1. / 3, jobCPU: 1. / 3, queue: 2. / 3, reading: 1, working: 1. / 3}),
			7. / 15 * 2 / 3, 7. / 15 / 3, 7. / 15},
		// The same without computing: 15 ms a step, 5 ms from memory.
		{"one worker, and nothing else to do", gpu(cell{some: 2. / 3, scopeCPU: 1. / 3, jobCPU: 1. / 3, queue: 2. / 3, reading: 1, working: 1. / 3}),
			2. / 3, 1. / 3, 2. / 3},
		{"one that computes, too, and is not the leading thread", gpu(cell{busy: 0.6, some: 0.3, scopeCPU: 0.1, jobCPU: 0.1, queue: 0.3, reading: 1, working: 0.1}),
			0.3, 0.1, 0.3},
		{"four whose buffer is full, and the GPU waits for another cause", gpu(cell{busy: 0.3, some: 0.4, scopeCPU: 0.1, jobCPU: 0.1, queue: 0.5, reading: 4, working: 0.1}),
			0, 0, 0},
		{"four whose buffer is full, while a checkpoint is written", gpu(cell{busy: 0.3, some: 0.65, scopeCPU: 0.05, jobCPU: 0.05, queue: 0, reading: 4, working: 0, writing: true}),
			0.65, 0.05, 0.65},
		{"four that wait at one disk", gpu(cell{busy: 0.5, some: 1, scopeCPU: 0.2, jobCPU: 0.2, queue: 3.8, reading: 4, working: 0.2}),
			0.5 * 0.95, 0.5 * 0.05, 0.5},
		{"eight on two cores, whose reads are short", gpu(cell{busy: 0.5, some: 0.3, scopeCPU: 2, jobCPU: 2, starved: 1, queue: 0.4, reading: 8, working: 7.6}),
			0.025, 0.475, 0.05},
		{"one that reads asynchronously, which pressure misses", gpu(cell{busy: 0.4, scopeCPU: 0.1, jobCPU: 0.1, queue: 7, reading: 1, working: 0.1}),
			0.54, 0.06, 0.6},
		{"a queue of others does not make readers wait that work", gpu(cell{busy: 0.5, some: 0.1, scopeCPU: 0.9, jobCPU: 0.9, queue: 0.3, reading: 1, working: 0.9}),
			0.05, 0.45, 0.1},
	} {
		got := c.cell.split()
		gain := got.gain + new(gains).take(got.could, got.room)
		if math.Abs(got.storage-c.storage)+math.Abs(got.cpu-c.cpu)+math.Abs(gain-c.gain) > 0.02 {
			t.Errorf("%s: %+v with a gain of %.3f, want %.3f, %.3f and %.3f", c.name, got, gain, c.storage, c.cpu, c.gain)
		}
	}
}

// TestQueueWherePressureIsThin: a single thread that reads, decodes and computes in turn wakes up on another CPU each
// time, so that pressure shows half of its waiting.
func TestQueueWherePressureIsThin(t *testing.T) {
	c := cell{dt: 1, busy: 0.3, some: 0.3, scopeCPU: 0.1, jobCPU: 0.1, leading: 0.1, leaders: 1, queue: 0.58, hasGPU: true,
		hasPressure: true, ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.58) > 1e-9 || math.Abs(got.cpu-0.1) > 1e-9 {
		t.Errorf("%+v, want what the queue shows", got)
	}
	c.queue = 3 // read ahead
	if got := c.split(); math.Abs(got.storage-0.6) > 1e-9 {
		t.Errorf("%+v, want no more than it slept without computing", got)
	}
	c.queue, c.queued = 0.1, 30 // nearly all of it is others'
	if got := c.split(); math.Abs(got.storage-0.3) > 1e-9 {
		t.Errorf("%+v, want what pressure shows", got)
	}
}

// TestSpin distinguishes a thread that spins while the GPU computes from one that decodes while it does not.
func TestSpin(t *testing.T) {
	for _, period := range []float64{0, 0.02, 0.167} {
		for _, c := range []struct {
			name    string
			leading func(busy, waited float64) float64
			reads   float64 // share of the time in which it waits for storage
			cpu     float64 // share of the time that is its own work
		}{
			{"spins and then sleeps", func(busy, _ float64) float64 { return busy }, 0, 0},
			{"spins and then decodes", func(_, _ float64) float64 { return 1 }, 0, 0.55},
			{"sleeps and then decodes", func(busy, _ float64) float64 { return 1 - busy }, 0, 0.55},
			{"sleeps, and others decode", func(_, _ float64) float64 { return 0.02 }, 0, 0.02},
			{"spins, reads and decodes", func(_, waited float64) float64 { return 1 - waited }, 0.35, 0.2},
			{"sleeps, reads and decodes", func(busy, waited float64) float64 { return 1 - busy - waited }, 0.35, 0.2},
		} {
			if got := ownWork(c.leading, c.reads, period); math.Abs(got-c.cpu) > 0.04 {
				t.Errorf("a thread that %s, with a driver's samples of %v s: got %.3f of the time as its own work, want %.3f",
					c.name, period, got, c.cpu)
			}
		}
	}
}

// ownWork is the share of twenty seconds that a leading thread's own work is found to be. Its steps differ, and the
// GPU's time is known as means over a period.
func ownWork(leading func(busy, waited float64) float64, reads, period float64) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	const step = 0.01
	var s spin
	var own, smooth, known float64 // known: of the mean that the driver returned last
	length := max(0.1, math.Ceil(3*period/step)*step)
	c := cell{period: period, leaders: 1, hasGPU: true}
	level, busySum, waitedSum := 0.0, 0.0, 0.0
	for i := range int(20 / step) {
		if i%10 == 0 {
			level = 0.1 * (random.Float64() - 0.5)
		}
		busy := 0.45 + level + 0.06*(random.Float64()-0.5)    // a few steps in each cell, and the part of one
		waited := max(0, reads+0.45-busy) * min(1, 1e6*reads) // the less it computes, the more it reads
		smooth += busy * step
		if i%max(1, int(math.Round(period/step))) == 0 {
			known = smooth
		}
		c.dt += step
		c.leading += step * (leading(busy, waited) + 0.01*(random.Float64()-0.5))
		waitedSum += step * waited
		if c.dt < length-step/2 {
			continue
		}
		c.busy, busySum = known-busySum, known
		s.add(&c, waitedSum)
		c.spins = s.spins()
		c.overlap = s.overlap(&c, waitedSum)
		own += c.own(0)
		c, waitedSum = cell{period: period, leaders: 1, hasGPU: true}, 0
	}
	return own / 20
}

func TestSpinningIsNoWork(t *testing.T) {
	c := cell{dt: 1, busy: 0.5, jobCPU: 0.5, leading: 0.5, leaders: 1, overlap: 0.5, spins: true, scopeCPU: 0.5,
		hasGPU: true, hasPressure: true, ownIO: true}
	if got := c.split(); got != (parts{busy: 0.5}) {
		t.Errorf("%+v, want no CPU stall: the thread waits with an idle GPU", got)
	}
}

// TestSpinsAndFindsNoCPU: one that does all in turn and spins is ready for a CPU while it spins and while it decodes.
func TestSpinsAndFindsNoCPU(t *testing.T) {
	c := cell{dt: 1, busy: 0.6, jobCPU: 0.5, leading: 0.5, ready: 0.4, starved: 0.4, leaders: 1, spins: true,
		scopeCPU: 0.5, hasGPU: true, hasPressure: true, ownIO: true}
	var s spin
	c.overlap = s.overlap(&c, 0)
	if got := c.split(); math.Abs(got.cpu-0.3) > 1e-9 {
		t.Errorf("%+v, want 0.3: 0.9 less the 0.6 of the GPU", got)
	}
}

// TestSpunLate: CPU time of a spinning thread that the kernel reports late is no work.
func TestSpunLate(t *testing.T) {
	var s spin
	var work float64
	spun := func(leading, busy float64) float64 {
		return s.overlap(&cell{dt: 0.1, leading: leading, busy: busy, spins: true, leaders: 1, hasGPU: true}, 0)
	}
	for range 100 { // 30 ms of spinning; 4 ms are reported in the next cell, without work
		work += 0.026 - spun(0.026, 0.03)
		work += 0.004 - spun(0.004, 0)
	}
	if work > 1e-9 {
		t.Errorf("%.3f s of 3 s of spinning count as work, want 0", work)
	}
	if got := spun(0.1, 0.05); got > 0.05+1e-9 {
		t.Errorf("%v of spinning while the accelerator worked for 0.05, want no more", got)
	}
}

// TestSeveralLeaders: eight processes, one a GPU, spin together and sleep together.
func TestSeveralLeaders(t *testing.T) {
	c := cell{dt: 1, busy: 0.5, jobCPU: 8 * 0.55, leading: 8 * 0.5, leaders: 8, scopeCPU: 8 * 0.55, hasGPU: true,
		hasPressure: true, ownIO: true}
	c = c.perLeader()
	var s spin
	c.spins = true
	c.overlap = s.overlap(&c, 0)
	if got := c.split(); math.Abs(got.cpu-0.05) > 1e-9 || got.storage != 0 {
		t.Errorf("%+v, want 0.05: the work of one thread without spinning", got)
	}
}

func TestWrote(t *testing.T) {
	for _, c := range []struct {
		name           string
		fetched, wrote float64
		want           bool
	}{
		{"a checkpoint", 0, 64 << 20, true},
		{"a checkpoint while workers read on", 8 << 20, 64 << 20, true},
		{"a log", 0, 4 << 10, false},
		{"an epoch that keeps what it has made of its samples", 64 << 20, 8 << 20, false},
	} {
		before := levels{fetched: 5, stored: 12}
		if got := before.wrote(levels{fetched: 5 + c.fetched, stored: 12 + c.fetched + c.wrote}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWithoutPressure: on a kernel without PSI a job's waiting is its own part of a queue.
func TestWithoutPressure(t *testing.T) {
	c := cell{dt: 1, busy: 0.4, queue: 0.5, queued: 30, jobCPU: 0.1, leading: 0.1, leaders: 1, ofJob: true, hasGPU: true,
		ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.5) > 1e-9 {
		t.Errorf("%+v, want what its own queue shows", got)
	}
	c.queue = 0
	if got := c.split(); got.storage != 0 {
		t.Errorf("%+v of a job that reads nothing, want no storage stall", got)
	}
}

// TestReadsInNoCounter: a thread that reads a network file system past the page cache sleeps. Only samples show why.
func TestReadsInNoCounter(t *testing.T) {
	serial := cell{dt: 1, busy: 0.3, inReads: 0.5, jobCPU: 0.2, leading: 0.2, leaders: 1, hasGPU: true, hasPressure: true,
		ofJob: true, ownIO: true}
	if got := serial.split(); math.Abs(got.storage-0.5) > 1e-9 || math.Abs(got.cpu-0.2) > 1e-9 {
		t.Errorf("in turn: %+v, want storage 0.5 and cpu 0.2", got)
	}
	ahead := cell{dt: 1, busy: 0.3, inReads: 2.4, jobCPU: 0.6, reading: 3, working: 0.6, leaders: 1, hasGPU: true,
		hasPressure: true, ofJob: true}
	if got := ahead.split(); math.Abs(got.storage-0.56) > 1e-9 || math.Abs(got.cpu-0.14) > 1e-9 {
		t.Errorf("ahead: %+v, want storage 0.56 and cpu 0.14", got)
	}
	ahead.inReads = 0
	if got := ahead.split(); got.storage != 0 {
		t.Errorf("in no reads: %+v, want no storage stall", got)
	}
}

// TestOneThreadInTurn: a thread that works does not wait, whatever the pressure of its cgroup is.
func TestOneThreadInTurn(t *testing.T) {
	c := cell{dt: 1, some: 0.9, scopeCPU: 0.5, jobCPU: 0.4, leading: 0.4, leaders: 1, hasGPU: true, hasPressure: true,
		ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.6) > 1e-9 || math.Abs(got.cpu-0.4) > 1e-9 {
		t.Errorf("%+v, want no more than it slept", got)
	}
	c.busy = 0.1 // some thread reads, and none is known to read ahead
	if got := c.split(); math.Abs(got.storage-0.5) > 1e-9 || math.Abs(got.cpu-0.4) > 1e-9 {
		t.Errorf("%+v, want storage 0.5 and cpu 0.4: the GPU's thread worked meanwhile", got)
	}
}

// TestThinPressure: a load whose thread wakes up on another CPU each time waited all the time that it slept; a training
// loop may have slept for something else.
func TestThinPressure(t *testing.T) {
	c := cell{dt: 1, some: 0.45, scopeCPU: 0.2, jobCPU: 0.2, leading: 0.2, leaders: 1, hasGPU: true, hasPressure: true,
		ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.8) > 1e-9 {
		t.Errorf("%+v, want all that it slept", got)
	}
	c.some = 0.1
	if got := c.split(); got.storage > 0.2+1e-9 {
		t.Errorf("%+v, want no more than twice what pressure shows", got)
	}
	c.some, c.busy = 0.45, 0.2
	if got := c.split(); math.Abs(got.storage-0.45) > 1e-9 {
		t.Errorf("%+v, want what pressure shows", got)
	}
}

// TestPoolOfTheThread: training on the CPU. The pool works next to the main thread, and then spins while that one
// reads. In 100 s, 72 are spent in reads.
func TestPoolOfTheThread(t *testing.T) {
	c := cell{dt: 100, some: 45, scopeCPU: 100, jobCPU: 100, leading: 28, leaders: 1, queue: 70, ofJob: true,
		hasPressure: true, ownIO: true}
	if got := c.split(); math.Abs(got.storage-72) > 2 || math.Abs(got.cpu-28) > 2 {
		t.Errorf("%+v, want storage 72 and cpu 28", got)
	}
	c.some, c.queue = 0, 0 // from memory: the main thread sleeps while the pool works
	if got := c.split(); got.storage != 0 || math.Abs(got.cpu-100) > 1e-9 {
		t.Errorf("%+v, want cpu 100", got)
	}
	// Two workers read all the time and hardly decode; the main thread and its pool work for 11.
	c = cell{dt: 100, some: 80, scopeCPU: 24, jobCPU: 24, leading: 11, leaders: 1, reading: 200, working: 2, queue: 190,
		ofJob: true, hasPressure: true, ownIO: true}
	if got := c.split(); math.Abs(got.storage-88) > 2 || math.Abs(got.cpu-12) > 2 {
		t.Errorf("%+v, want storage 88 and cpu 12", got)
	}
}

// TestGainOverCells: readers that wait for 60 of 100 ms would need 40 without storage. The GPU has a queue: it works in
// one cell and waits for them in the next.
func TestGainOverCells(t *testing.T) {
	reader := cell{dt: 0.1, some: 0.06, scopeCPU: 0.04, jobCPU: 0.04, reading: 0.1, working: 0.04, queue: 0.06, leaders: 1,
		ofJob: true, hasGPU: true, hasPressure: true, ownIO: true}
	var all gains
	var sum, busy float64
	for i := range 100 {
		c := reader
		c.busy = 0.09 * float64(i%2)
		of := c.split()
		sum += of.gain + all.take(of.could, of.room)
		busy += of.busy
	}
	if want := 5.5; math.Abs(sum-want) > 0.3 { // a step takes max(40, 45) ms
		t.Errorf("%.2f of 10 s would be saved, with %.2f busy, want %.2f", sum, busy, want)
	}
}

// TestMainThreadDecodes: one thread reads, another decodes for 5 and drives the GPU for 8 of 20 ms, and waits for the
// first for 7. Its own work cannot hide behind the GPU.
func TestMainThreadDecodes(t *testing.T) {
	c := cell{dt: 20, busy: 8, some: 20, scopeCPU: 6, jobCPU: 6, leading: 5, reading: 20, working: 1, queue: 19,
		leaders: 1, ofJob: true, hasGPU: true, hasPressure: true, ownIO: true}
	of := c.split()
	gain := of.gain + new(gains).take(of.could, of.room)
	if math.Abs(of.cpu-5) > 1 || math.Abs(of.storage-7) > 1 || math.Abs(gain-7) > 0.5 {
		t.Errorf("%+v with a gain of %.1f, want cpu 5, storage 7 and a gain of 7", of, gain)
	}
}

// TestReadyAfterRead: a thread that a disk wakes up and that finds no CPU still waits for the disk's data.
func TestReadyAfterRead(t *testing.T) {
	c := cell{dt: 1, busy: 0.4, some: 0.36, scopeCPU: 0.04, jobCPU: 0.04, leading: 0.04, ready: 0.2, leaders: 1,
		ofJob: true, hasGPU: true, hasPressure: true, ownIO: true}
	if got := c.split(); math.Abs(got.storage-0.54) > 1e-9 || math.Abs(got.cpu-0.06) > 1e-9 {
		t.Errorf("%+v, want storage 0.54: 0.36 and nine tenths of 0.2", got)
	}
	c.some = 0
	if got := c.split(); got.storage != 0 || math.Abs(got.cpu-0.24) > 1e-9 {
		t.Errorf("%+v from memory, want cpu 0.24", got)
	}
}
