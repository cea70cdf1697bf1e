package process

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	mostThreadsLookedAt = 512 // in a look, over all jobs: about 6 us each
	mostReaders         = 128 // of a job: about 1 us each with every reading
	// readsFor is for how long a thread that fetches nothing more is still taken for one that reads: a single read of a
	// disk that is overloaded may take longer than the time between two looks.
	readsFor = 3 * time.Second
	// looksApart is between two looks at threads, however many readings are taken for edges.
	looksApart = 80 * time.Millisecond
	// asks is from how many bytes a second reads of something that is no disk of this machine count, which the kernel
	// does not tell from those of a pipe.
	asks = 1 << 20
)

// threads is what is known of single threads of a job.
type threads struct {
	leaders []*thread
	readers []*thread
	at      time.Duration // of the last reading
	looked  time.Duration // of the last look; 0 before the first
	bytes   uint64        // that the job had fetched by then
	idle    bool          // and nobody had fetched anything since the look before
	next    int           // the member that the next look begins with
	remote  bool          // data come from no disk of this machine
	sampled int           // of leaders and readers, the one whose sleep was looked at last

	led, leading, leaderReady, reading, working, inReads time.Duration // only ever grow
}

// fetched is what a thread or a process has read.
type fetched struct{ bytes, chars uint64 }

// movedSince says whether something was fetched since: from storage, or, where that is told, at least so much by read
// calls.
func (f fetched) movedSince(before fetched, asked uint64) bool {
	return f.bytes > before.bytes || asked > 0 && f.chars >= before.chars+asked
}

// read brings the times up to date.
func (t *threads) read(s *Source, now time.Duration) {
	dt := max(0, now-t.at)
	if t.at == 0 {
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

// begins says that the job has begun to fetch data since the last look, so that the next should not wait.
func (j *job) begins() bool { return j.threads.idle && j.total[readBytes] > j.threads.bytes }

// lookAtThreads finds the threads that lead, and those that read among as many as the budget allows. What does not fit
// comes first the next time.
func (j *job) lookAtThreads(s *Source, budget int, now time.Duration) {
	t := &j.threads
	since := now - t.looked
	if since < looksApart {
		return
	}
	first := t.looked == 0
	t.lead(s, j.leading(s.holdersOf(j.id)))
	asked := j.asked(since)
	t.remote = asked > 0
	moved := map[int]bool{}
	for range j.members {
		m := j.members[t.next%len(j.members)]
		if budget <= 0 {
			break
		}
		t.next++
		before := m.fetched
		m.fetched = fetched{m.now[readBytes], m.now[readChars]}
		if !m.present() || !m.fetched.movedSince(before, asked) {
			continue
		}
		if m.many {
			budget -= m.lookInto(asked, budget, moved)
		} else {
			moved[m.pid] = true
		}
	}
	t.looked, t.bytes, t.idle = now, j.total[readBytes], len(moved) == 0
	if first { // they may have read long ago
		clear(moved)
	}
	t.keep(s, moved, now)
}

// asked is from how many bytes on what was asked for by read calls counts as fetched: 0 for never, where the job fetches
// from storage what it asks for.
func (j *job) asked(since time.Duration) uint64 {
	var bytes, chars uint64
	for _, m := range j.members {
		bytes += m.now[readBytes] - min(m.fetched.bytes, m.now[readBytes])
		chars += m.now[readChars] - min(m.fetched.chars, m.now[readChars])
	}
	least := uint64(asks * since.Seconds())
	if chars < least || bytes >= chars/10 {
		return 0
	}
	return max(1, least)
}

// lookInto finds the threads of a process that have read since the last look, and says how many it looked at. One that was
// not known before is taken for one, if it has read at all.
func (m *member) lookInto(asked uint64, most int, moved map[int]bool) int {
	tids, err := names(filepath.Join(m.dir, "task"), most)
	if err != nil {
		return 1
	}
	seen := make(map[int]fetched, len(tids))
	for _, name := range tids {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := readAll(m.dir+"/task/"+name+"/io", 4096)
		if err != nil {
			continue // it ended, or is not ours to see
		}
		bytes, chars, _, ok := parseIO(text)
		if !ok {
			continue
		}
		now := fetched{bytes, chars}
		if now.movedSince(m.threads[id], asked) {
			moved[id] = true
		}
		seen[id] = now
	}
	m.threads = seen
	return len(tids)
}

// keep makes the readers those that moved, and those that did lately.
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
		if len(t.readers) == mostReaders {
			return
		}
		if !t.leads(id) {
			t.readers = append(t.readers, s.follow(id, now))
		}
	}
}

// thread is one whose times are read with every reading.
type thread struct {
	id    int
	sched file          // its schedstat (Documentation/scheduler/sched-stats.rst)
	moved time.Duration // when it was seen to have fetched something

	ran, ready counter
	in         inRead
}

func (t *thread) close(s *Source) {
	s.close(&t.sched)
	s.close(&t.in.call)
}

// follow begins to read a thread's times. By its number alone /proc finds any thread, whatever process it is of.
func (s *Source) follow(id int, now time.Duration) *thread {
	t := &thread{id: id, moved: now}
	folder := filepath.Join(s.proc, strconv.Itoa(id))
	t.sched.path, t.in.call.path = filepath.Join(folder, "schedstat"), filepath.Join(folder, "syscall")
	_, _, _ = t.read(s, 0) // where it counts from
	return t
}

// read is how long the thread ran and was ready in the last dt. It is false for one that is gone.
func (t *thread) read(s *Source, dt time.Duration) (ran, ready time.Duration, ok bool) {
	text, err := s.read(&t.sched)
	if err != nil {
		t.close(s)
		return 0, 0, false
	}
	nowRan, nowReady, ok := parseSchedstat(text)
	if !ok {
		t.close(s)
		return 0, 0, false
	}
	ran = t.ran.grown(nowRan, dt)
	return ran, t.ready.grown(nowReady, dt-ran), true
}

// counter is one time of a thread's. The kernel brings that of a running thread up to date with its own ticks, of 1 to 10
// ms, so it grows in steps: what is more than the time that went by is told with the next readings.
type counter struct {
	at    uint64 // ns
	known bool
	owed  time.Duration
}

// mostOwed bounds what is told late. A counter that is further ahead was not read for longer than that.
const mostOwed = 50 * time.Millisecond

func (c *counter) grown(now uint64, dt time.Duration) time.Duration {
	if c.known {
		c.owed += time.Duration(min(now-min(c.at, now), uint64(time.Hour)))
	}
	c.at, c.known = now, true
	told := min(c.owed, max(0, dt))
	c.owed = min(c.owed-told, mostOwed)
	return told
}

// parseSchedstat reads a thread's time on CPUs and its time ready without one, in nanoseconds.
func parseSchedstat(text []byte) (ran, ready uint64, ok bool) {
	first, rest, _ := bytes.Cut(text, []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	ran, ok1 := kernfile.ParseUint(first)
	ready, ok2 := kernfile.ParseUint(second)
	return ran, ready, ok1 && ok2
}
