package process

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	maxScannedThreads = 512 // per scan over all jobs: about 6 us each
	maxReaders        = 128 // of a job: about 1 us each per reading
	// readsFor is how long a thread counts as a reader after its last bytes: a single read from an overloaded disk may
	// take longer than the time between two scans.
	readsFor = 3 * time.Second
	// minScanInterval is the minimum time between two scans of threads, with any number of readings for edges.
	minScanInterval = 80 * time.Millisecond
	// requestRate is the minimum of bytes/s by read calls that counts as reading from storage outside of this machine.
	// The kernel does not distinguish such reads from those of a pipe.
	requestRate = 1 << 20
)

// threads holds the followed threads of a job.
type threads struct {
	leaders []*thread
	readers []*thread
	at      time.Duration // of the last reading
	scanned time.Duration // of the last scan; 0 before the first
	bytes   uint64        // of the job at the last scan
	idle    bool          // no thread read anything between the last two scans
	next    int           // member with which the next scan starts
	remote  bool          // data may come from no disk of this machine, and not from the page cache alone
	sampled int           // index in leaders and readers of the last sample

	led, leading, leaderReady, leaderSystem time.Duration // never decrease
	reading, working, inReads               time.Duration // never decrease
}

// fetched is what a thread or a process has read.
type fetched struct{ bytes, chars uint64 }

// grewSince reports whether bytes were read from storage or, if minRequested is not 0, at least that many by read
// calls.
func (f fetched) grewSince(before fetched, minRequested uint64) bool {
	return f.bytes > before.bytes || minRequested > 0 && f.chars >= before.chars+minRequested
}

// leave has the times stand still until the next read. Of a job that no window needs, the scheduler reports more than
// these times say.
func (t *threads) leave() { t.at = 0 }

// begin makes the times go on from now.
func (t *threads) begin() {
	for _, other := range slices.Concat(t.leaders, t.readers) {
		other.ran, other.ready, other.system = counter{}, counter{}, counter{}
	}
}

// read updates the times.
func (t *threads) read(s *Source, now time.Duration) {
	dt := max(0, now-t.at)
	if t.at == 0 {
		t.begin()
		dt = 0
	}
	t.at = now
	if t.remote {
		t.sampleReads(s)
	}
	t.leaders = slices.DeleteFunc(t.leaders, func(l *thread) bool {
		ran, ready, ok := l.read(s, dt)
		if ok {
			t.led += dt
			t.leading += ran
			t.leaderReady += ready
			t.leaderSystem += l.inKernel(s, ran)
			t.inReads += l.slept(dt - ran - ready)
		}
		return !ok
	})
	t.readers = slices.DeleteFunc(t.readers, func(r *thread) bool {
		ran, ready, ok := r.read(s, dt)
		if ok {
			t.reading += dt
			t.working += ran + ready
			t.inReads += r.slept(dt - ran - ready)
		}
		return !ok
	})
}

func (t *threads) close(s *Source) {
	for _, other := range slices.Concat(t.leaders, t.readers) {
		other.close(s)
	}
}

// becameActive reports whether the job started to read since the last scan, so that the next scan should not wait.
func (j *job) becameActive() bool { return j.threads.idle && j.total[readBytes] > j.threads.bytes }

// scanThreads finds the leaders, and the readers among up to budget threads. The next scan starts with the rest.
func (j *job) scanThreads(s *Source, budget int, now time.Duration) {
	t := &j.threads
	since, first := now-t.scanned, t.scanned == 0
	if since < minScanInterval && !first { // the clock starts with this program
		return
	}
	t.lead(s, j.leading(s, s.holdersOf(j.id)))
	minimum := j.minRequested(since)
	t.setRemote(minimum > 0 && j.mounts.remote())
	moved := map[int]bool{}
	for range j.members {
		m := j.members[t.next%len(j.members)]
		if budget <= 0 {
			break
		}
		t.next++
		before := m.fetched
		m.fetched = fetched{m.now[readBytes], m.now[readChars]}
		if !m.present() || !m.fetched.grewSince(before, minimum) {
			continue
		}
		if m.many {
			budget -= m.scanThreads(s, minimum, budget, moved)
		} else {
			moved[m.pid] = true
		}
	}
	t.scanned, t.bytes, t.idle = now, j.total[readBytes], len(moved) == 0
	if first { // they may have read long before
		clear(moved)
	}
	t.keep(s, moved, now)
}

// minRequested returns how many bytes of read calls count as reading: 0 for none, if the job reads its data from
// storage of this machine.
func (j *job) minRequested(since time.Duration) uint64 {
	var bytes, chars uint64
	for _, m := range j.members {
		bytes += m.now[readBytes] - min(m.fetched.bytes, m.now[readBytes])
		chars += m.now[readChars] - min(m.fetched.chars, m.now[readChars])
	}
	minimum := uint64(requestRate * since.Seconds())
	if chars < minimum || bytes >= chars/10 {
		return 0
	}
	return max(1, minimum)
}

// scanThreads finds the threads of a process that have read since the last scan, and returns the number of threads. A
// new thread counts if it has read anything.
func (m *member) scanThreads(s *Source, minRequested uint64, limit int, moved map[int]bool) int {
	var list []Thread
	var err error
	if s.reader != nil {
		list, err = s.reader.Threads(m.key(), limit)
	} else {
		list, err = threadsIn(m.dir, limit)
	}
	if err != nil {
		return 1
	}
	seen := make(map[int]fetched, len(list))
	for _, t := range list {
		now := fetched{t.Read, t.Chars}
		if now.grewSince(m.threads[t.ID], minRequested) {
			moved[t.ID] = true
		}
		seen[t.ID] = now
	}
	m.threads = seen
	return max(1, len(list))
}

// threadsIn lists up to limit threads of a process, by its folder in /proc. It leaves out threads that end meanwhile.
func threadsIn(dir string, limit int) ([]Thread, error) {
	tids, err := kernfile.Names(filepath.Join(dir, "task"), limit)
	if err != nil {
		return nil, err
	}
	list := make([]Thread, 0, len(tids))
	for _, name := range tids {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := readSmall(dir + "/task/" + name + "/io")
		if errors.Is(err, fs.ErrPermission) {
			return nil, err // for the others, too
		}
		if read, chars, _, ok := ParseIO(text); ok && err == nil {
			list = append(list, Thread{id, read, chars})
		}
	}
	return list, nil
}

// keep makes the readers those that moved now or recently.
func (t *threads) keep(s *Source, moved map[int]bool, now time.Duration) {
	t.readers = slices.DeleteFunc(t.readers, func(r *thread) bool {
		if moved[r.id] {
			r.moved = now
			delete(moved, r.id)
		}
		if now-r.moved > readsFor || t.leads(r.id) {
			r.close(s)
			return true
		}
		return false
	})
	for id := range moved {
		if len(t.readers) == maxReaders {
			return
		}
		if !t.leads(id) {
			t.readers = append(t.readers, s.follow(id, now))
		}
	}
}

// thread is a thread with times in every reading.
type thread struct {
	id    int
	sched file          // schedstat (Documentation/scheduler/sched-stats.rst)
	stat  file          // of a leader
	moved time.Duration // time of its last bytes

	ran, ready, system counter
	in                 inRead
}

func (t *thread) close(s *Source) {
	s.close(&t.sched)
	s.close(&t.stat)
	s.close(&t.in.call)
}

// follow starts to read the times of a thread. /proc finds a thread of any process by its ID.
func (s *Source) follow(id int, now time.Duration) *thread {
	t := &thread{id: id, moved: now}
	folder := filepath.Join(s.proc, strconv.Itoa(id))
	t.stat = file{path: filepath.Join(folder, "task", strconv.Itoa(id), "stat")} // not of its process
	t.sched = file{path: filepath.Join(folder, "schedstat")}
	t.in.call.path = filepath.Join(folder, "syscall")
	_, _, _ = t.read(s, 0) // the base
	return t
}

// read returns how long the thread ran and was ready in the last dt. It reports false if the thread is gone.
func (t *thread) read(s *Source, dt time.Duration) (ran, ready time.Duration, ok bool) {
	if t.ran.known && s.leftOut(t.id) {
		ran = t.ran.grown(t.ran.at, dt)
		return ran, t.ready.grown(t.ready.at, dt-ran), true
	}
	text, err := s.read(&t.sched)
	if err != nil {
		t.close(s)
		return 0, 0, false
	}
	nowRan, nowReady, ok := ParseSchedstat(text)
	if !ok {
		t.close(s)
		return 0, 0, false
	}
	ran = t.ran.grown(nowRan, dt)
	return ran, t.ready.grown(nowReady, dt-ran), true
}

// inKernel returns how long a leader was in the kernel, of the time that it ran since the last reading.
func (t *thread) inKernel(s *Source, ran time.Duration) time.Duration {
	if t.system.known && s.leftOut(t.id) {
		return t.system.grown(t.system.at, ran)
	}
	text, err := s.read(&t.stat)
	if err != nil {
		return 0
	}
	now, ok := parseStat(text)
	if !ok {
		return 0
	}
	return t.system.grown(uint64(duration(now.system)), ran)
}

// counter is one time of a thread. The kernel updates the times of a running thread at its own ticks of 1 to 10 ms, so
// they grow in steps. Growth beyond the elapsed time moves to the next readings.
type counter struct {
	at      uint64 // ns
	known   bool
	pending time.Duration
}

// maxPending bounds the growth that moves to later readings. A counter that is further ahead was not read for longer.
const maxPending = 50 * time.Millisecond

func (c *counter) grown(now uint64, dt time.Duration) time.Duration {
	if c.known {
		c.pending += time.Duration(min(now-min(c.at, now), uint64(time.Hour)))
	}
	c.at, c.known = now, true
	grown := min(c.pending, max(0, dt))
	c.pending = min(c.pending-grown, maxPending)
	return grown
}

// ParseSchedstat parses a thread's time on CPUs and its time waiting for one, in nanoseconds.
func ParseSchedstat(text []byte) (ran, ready uint64, ok bool) {
	first, rest, _ := bytes.Cut(text, []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	ran, ok1 := kernfile.ParseUint(first)
	ready, ok2 := kernfile.ParseUint(second)
	return ran, ready, ok1 && ok2
}
