package switches

import (
	"testing"
	"time"
)

// BenchmarkSwitches is the cost of one switch, of two threads that wake each other 10,000 times a second.
func BenchmarkSwitches(b *testing.B) {
	s, j := newState(), &job{}
	now := time.Second
	for tid := 1; tid <= 2; tid++ {
		s.add(record{at: now, kind: forked, tid: tid, pid: 1}, j)
	}
	for i := range maxSeen {
		s.threads[1].past.add(now, time.Duration(i)*50*time.Microsecond, cause{state: 1, syscall: i % 3})
		s.threads[2].past.add(now, time.Duration(i)*50*time.Microsecond, cause{state: 1, syscall: i % 3})
	}
	s.reported = now
	b.ReportAllocs()
	for i := range b.N {
		tid := 1 + i%2
		now += 50 * time.Microsecond
		s.apply(&record{at: now, kind: switchedIn, tid: tid, pid: 1})
		s.apply(&record{at: now + 40*time.Microsecond, kind: switchedOut, tid: tid, pid: 1})
		if i%1000 == 999 {
			s.until = now + 45*time.Microsecond
			s.sleepers = s.sleepers[:0]
			s.report()
			s.schedule.Events = s.schedule.Events[:0]
		}
	}
}
