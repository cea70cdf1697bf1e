package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// LogLine is a line of a log, and when it was written; the zero time is now.
type LogLine struct {
	At   time.Time
	Text string
}

// Limits of the logs that are followed.
const (
	maxLogs  = 64                     // of programs
	maxOld   = 5 * time.Minute        // of a line: the history has its time
	idleLog  = time.Hour              // without a line, after which a log is given up if another one needs its place
	lookGone = 200 * time.Millisecond // between two looks whether the programs run
	lookIdle = 2 * time.Second        // the same without a program
	lateLog  = 2 * time.Second        // after a program's end in which a Collector may send its last lines
)

// Logs makes windows of the logs that programs, or a Collector for them, send to the API. It is safe for concurrent
// use. Close ends it.
type Logs struct {
	*windows.Client

	monitor *monitor.Monitor
	end     context.CancelFunc
	looking sync.WaitGroup

	mu     sync.Mutex
	logs   map[program]*programLog
	places *trust.Places // of logs
}

// program is whose log it is: a process, and the client that sends it.
type program struct {
	client string
	pid    int
}

type programLog struct {
	follower *Follower
	heard    time.Duration // when the latest line came, on the monotonic clock
	gone     bool          // the program has ended
}

// NewLogs follows logs for a client of the monitor.
func NewLogs(m *monitor.Monitor, client *windows.Client) *Logs {
	ctx, end := context.WithCancel(context.Background())
	l := &Logs{Client: client, monitor: m, end: end, logs: map[program]*programLog{}, places: trust.NewPlaces(maxLogs)}
	look := func() { again(ctx, lookIdle, func() time.Duration { return l.leave(false) }) }
	l.looking.Go(func() { sample.Restart(ctx, func(err error) { m.Note("logs", err) }, look) })
	return l
}

// Close leaves all logs. Open windows are the client's.
func (l *Logs) Close() {
	l.end()
	l.looking.Wait()
	l.leave(true)
}

// ReadLog reads lines of a process: owner has its PID and its client. left is how many were left out, because they are
// too old, or because too many programs send logs.
func (l *Logs) ReadLog(owner window.Window, lines []LogLine) (left int) {
	if len(lines) == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := program{owner.Client, owner.PID}
	log := l.logs[key]
	if age := lines[0].age(sample.Now()); log == nil && age <= maxOld {
		log = l.add(key, owner, age)
	}
	if log == nil {
		return len(lines)
	}
	log.heard = sample.Now().Mono
	return log.follower.readLog(lines)
}

// age is how long ago a line was written.
func (l *LogLine) age(now sample.Stamp) time.Duration {
	if l.At.IsZero() {
		return 0
	}
	return max(now.Wall.Sub(l.At), 0)
}

// readLog reads lines of a log. left is how many are too old.
func (f *Follower) readLog(lines []LogLine) (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, at := sample.Now(), time.Duration(0)
	cut := progress.NewLines(func(text []byte) { f.line(at, text) })
	for i := range lines {
		age := lines[i].age(now)
		if age > maxOld {
			left++
			continue
		}
		at = now.Mono - age - f.began.At.Mono
		_, _ = cut.Write([]byte(lines[i].Text)) // never fails
		cut.Close()
	}
	return left
}

// add follows another program, whose first line has an age. It returns nil if there are too many.
func (l *Logs) add(key program, owner window.Window, age time.Duration) *programLog {
	now := l.monitor.Now()
	if l.places.Take(key.client) != nil {
		for other, log := range l.logs {
			if now.At.Mono-log.heard > idleLog {
				l.remove(other)
			}
		}
		if l.places.Take(key.client) != nil {
			return nil
		}
	}
	if age > fresh {
		now = now.Before(sample.Stamp{Mono: now.At.Mono - age, Wall: now.At.Wall.Add(-age)})
	}
	job := l.monitor.Jobs.JobOf(key.pid)
	if job != "" && l.monitor.Jobs.FollowFor(key.client, job, key.pid) != nil {
		job = "" // too many: its windows are about the machine
	}
	reader, _ := progress.NewReader(progress.Options{}) // fails only with a pattern of the user
	f := NewLate(l.monitor, &Windows{Client: l.Client}, reader, job, now)
	f.owner = owner
	l.logs[key] = &programLog{follower: f}
	return l.logs[key]
}

// remove ends the windows of a program that has ended, and drops those of another one.
func (l *Logs) remove(key program) {
	f, gone := l.logs[key].follower, l.logs[key].gone
	delete(l.logs, key)
	l.places.Release(key.client)
	if gone {
		f.Close(window.Outcome{})
	}
	f.Leave()
	if f.job != "" {
		l.monitor.Jobs.Unfollow(f.job)
	}
}

// leave leaves the logs of programs that have ended, or all. It returns the time until the next look.
func (l *Logs) leave(all bool) (next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = lookIdle
	for key, log := range l.logs {
		next = lookGone
		if !log.gone && errors.Is(unix.Kill(key.pid, 0), unix.ESRCH) {
			log.gone = true
			log.follower.Exited()
		}
		if all || log.gone && sample.Now().Mono-log.heard > lateLog {
			l.remove(key)
		}
	}
	return next
}
