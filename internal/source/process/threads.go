package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/source/decimal"
)

const (
	mostThreadsLookedAt = 512 // of a job, in one look: about 6 us each
	mostReaders         = 128 // of a job: about 1 us each with every reading
	// readerFor is for how many looks a thread that fetches nothing more is still taken for one that reads: a single read
	// of a disk that is overloaded may take longer than the time between two looks.
	readerFor = 3
	// asks is from how many bytes a look on reads of something that is no disk of this machine count, which the kernel
	// does not tell from those of a pipe.
	asks = 1 << 20
)

// threads is what is known of single threads of a job. A thread's times are in its schedstat, in nanoseconds: on a CPU,
// and ready without one. The kernel brings the first up to date with its own tick, so it may be 4 ms old.
type threads struct {
	leader  *thread
	readers []*thread
	seen    map[int]fetched // by thread, at the last look; nil before the first
	bytes   uint64          // that the job had fetched by then
	idle    bool            // nobody had fetched anything since the look before
	at      time.Duration   // of the last reading

	leading, leaderReady, reading, working time.Duration // only ever grow
}

// thread is one whose times are read with every reading.
type thread struct {
	id    int
	sched file
	ran   uint64 // ns
	ready uint64 // ns
	known bool   // ran and ready were read once
	quiet int    // looks since it fetched something
}

// fetched is what a thread or a process has read.
type fetched struct{ bytes, chars uint64 }

// movedSince says whether something was fetched since: from storage, or where remote, by read calls.
func (f fetched) movedSince(before fetched, remote bool) bool {
	return f.bytes > before.bytes || remote && f.chars >= before.chars+asks
}

// read brings the times up to date.
func (t *threads) read(s *Source, now time.Duration) {
	dt := now - t.at
	if t.at == 0 || dt < 0 {
		dt = 0
	}
	t.at = now
	if t.leader != nil {
		ran, ready, ok := t.leader.read(s)
		t.leading += min(ran, dt)
		t.leaderReady += min(ready, dt-min(ran, dt))
		if !ok {
			t.leader = nil
		}
	}
	t.readers = slices.DeleteFunc(t.readers, func(r *thread) bool {
		ran, ready, ok := r.read(s)
		if ok {
			t.reading += dt
			t.working += min(ran+ready, dt)
		}
		return !ok
	})
}

// read is how long the thread ran and was ready since it was read before. It is false for one that is gone.
func (t *thread) read(s *Source) (ran, ready time.Duration, ok bool) {
	text, err := s.read(&t.sched)
	if err != nil {
		s.close(&t.sched)
		return 0, 0, false
	}
	nowRan, nowReady, ok := parseSchedstat(text)
	if !ok {
		s.close(&t.sched)
		return 0, 0, false
	}
	if t.known {
		ran = time.Duration(nowRan - min(t.ran, nowRan))
		ready = time.Duration(nowReady - min(t.ready, nowReady))
	}
	t.ran, t.ready, t.known = nowRan, nowReady, true
	return ran, ready, true
}

func (t *threads) close(s *Source) {
	if t.leader != nil {
		s.close(&t.leader.sched)
	}
	for _, r := range t.readers {
		s.close(&r.sched)
	}
}

// begins says that the job has begun to fetch data, and which threads do is not known yet.
func (j *job) begins() bool {
	return len(j.threads.readers) == 0 && j.total[readBytes] > j.threads.bytes
}

// lookAtThreads finds the thread that leads and those that read.
func (j *job) lookAtThreads(s *Source) {
	first := j.threads.seen == nil
	j.threads.bytes = j.total[readBytes]
	j.threads.lead(s, j.leading())
	var fetching, asking bool
	for _, m := range j.members {
		fetching = fetching || m.now[readBytes] > m.fetched.bytes
		asking = asking || m.now[readChars] >= m.fetched.chars+asks
	}
	remote := asking && !fetching
	seen, left := map[int]fetched{}, mostThreadsLookedAt
	moved := map[int]bool{}
	for _, m := range j.members {
		now := fetched{m.now[readBytes], m.now[readChars]}
		if m.lost != 0 || m.ended || m.fresh || !now.movedSince(m.fetched, remote) {
			continue
		}
		if !m.many {
			moved[m.pid] = true
		} else {
			j.threads.lookInto(m, remote, seen, moved, &left)
		}
	}
	for _, m := range j.members {
		m.fetched = fetched{m.now[readBytes], m.now[readChars]}
	}
	if first { // they may have read long ago
		clear(moved)
	}
	for id, was := range j.threads.seen { // of a process that did nothing since
		if _, again := seen[id]; !again && len(seen) < mostThreadsLookedAt {
			seen[id] = was
		}
	}
	j.threads.seen, j.threads.idle = seen, len(moved) == 0
	j.threads.keep(s, moved)
}

// lookInto finds the threads of one process that have read since the last look. One that was not known before is taken
// for one, if it has read at all.
func (t *threads) lookInto(m *member, remote bool, seen map[int]fetched, moved map[int]bool, left *int) {
	tids, err := names(filepath.Join(m.dir, "task"), *left)
	if err != nil {
		return
	}
	*left -= len(tids)
	for _, name := range tids {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := readAll(m.dir+"/task/"+name+"/io", 4096)
		if err != nil {
			continue
		}
		var now fetched
		var ok bool
		if now.bytes, now.chars, _, ok = parseIO(text); !ok {
			continue
		}
		if now.movedSince(t.seen[id], remote) {
			moved[id] = true
		}
		seen[id] = now
	}
}

// keep makes the readers those that moved, and those that did lately.
func (t *threads) keep(s *Source, moved map[int]bool) {
	t.readers = slices.DeleteFunc(t.readers, func(r *thread) bool {
		r.quiet++
		if moved[r.id] {
			r.quiet = 0
			delete(moved, r.id)
		}
		if over := r.quiet > readerFor || t.leads(r.id); over {
			s.close(&r.sched)
			return true
		}
		return false
	})
	for id := range moved {
		if len(t.readers) == mostReaders {
			return
		}
		if !t.leads(id) {
			t.readers = append(t.readers, s.follow(id))
		}
	}
}

func (t *threads) leads(id int) bool { return t.leader != nil && t.leader.id == id }

// follow begins to read a thread's times. By its number alone /proc finds any thread, whatever process it is of.
func (s *Source) follow(id int) *thread {
	t := &thread{id: id}
	t.sched.path = filepath.Join(s.proc, strconv.Itoa(id), "schedstat")
	_, _, _ = t.read(s) // where it counts from
	return t
}

func (t *threads) lead(s *Source, m *member) {
	switch {
	case m == nil || t.leads(m.pid):
	default:
		if t.leader != nil {
			s.close(&t.leader.sched)
		}
		t.leader = s.follow(m.pid)
	}
}

// leading is the process whose first thread drives the accelerator, as training programs have it: the oldest one, but
// for wrappers around it. A wrapper has one child, which runs another program.
func (j *job) leading() *member {
	var m *member
	for _, other := range j.members {
		if other.lost == 0 && !other.ended && !other.fresh {
			m = other
			break
		}
	}
	for m != nil {
		child, count := j.childOf(m)
		if count != 1 || child.program() == m.program() {
			break
		}
		m = child
	}
	return m
}

// childOf is the oldest living child of a member, and how many there are.
func (j *job) childOf(m *member) (child *member, count int) {
	for _, other := range j.members {
		if other.parent == m.pid && other != m && other.lost == 0 && !other.ended && !other.fresh {
			if count++; count == 1 {
				child = other
			}
		}
	}
	return child, count
}

// program is what a process runs; "" where we may not know.
func (m *member) program() string {
	exe, _ := os.Readlink(filepath.Join(m.dir, "exe"))
	return exe
}

// parseSchedstat reads a thread's time on CPUs and its time ready without one, in nanoseconds.
func parseSchedstat(text []byte) (ran, ready uint64, ok bool) {
	first, rest, _ := bytes.Cut(text, []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	ran, ok1 := decimal.Parse(first)
	ready, ok2 := decimal.Parse(second)
	return ran, ready, ok1 && ok2
}
