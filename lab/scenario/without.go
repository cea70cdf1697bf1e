package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Evidence is a kind of readings that a machine may lack.
type Evidence string

const (
	Pressure Evidence = "pressure" // a kernel without PSI
	Reads    Evidence = "reads"    // the reads of the job's processes are unknown, as for another user's
	Threads  Evidence = "threads"  // a kernel without counters of single threads
	Disks    Evidence = "disks"    // storage that is no local disk
	Moments  Evidence = "moments"  // a driver returns the mean of a GPU's work over driverPeriod
)

// AllEvidence is what a replay can leave out.
var AllEvidence = [...]Evidence{Pressure, Reads, Threads, Disks, Moments}

// driverPeriod is the distance of the samples of many NVIDIA drivers.
const driverPeriod = 167 * time.Millisecond

// lack removes evidence from a recording.
type lack struct {
	Evidence
	at   time.Duration            // of the last reading of accelerators
	busy map[string]time.Duration // by accelerator, then
	held []recording.Entry        // ends of windows that wait for the driver's samples
	wait int                      // ticks until they do not
}

// driverTicks is how many readings later all samples of a window's last moments are there.
const driverTicks = 4

// hold keeps the end of a window back until the driver's samples of its last moments are there. It returns the entries
// to feed now.
func (l *lack) hold(e *recording.Entry) []recording.Entry {
	if l.Evidence != Moments || e.Mark == nil {
		return []recording.Entry{*e}
	}
	switch {
	case e.Mark.Op == recording.End || e.Mark.Op == recording.Leave && len(l.held) > 0:
		mark := *e.Mark
		l.held, l.wait = append(l.held, recording.Entry{Mark: &mark}), driverTicks
		return nil
	case e.Mark.Op == recording.Tick && l.wait > 0:
		if l.wait--; l.wait == 0 {
			ended := l.held
			l.held = nil
			return append([]recording.Entry{*e}, ended...)
		}
	}
	return []recording.Entry{*e}
}

func (*lack) feed(m *monitor.Monitor, entries []recording.Entry) error {
	for i := range entries {
		if err := m.Feed(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// resample moves a reading of accelerators to the end of the driver's newest period. It removes those in a reading for
// the edge of a window.
func (l *lack) resample(e *recording.Entry) {
	s := e.Sample
	if len(s.GPUs) == 0 {
		return
	}
	if e.Edge != 0 {
		s.GPUs = nil
		return
	}
	at, end := s.At.Mono, s.At.Mono.Truncate(driverPeriod)
	before := l.busy
	l.busy = map[string]time.Duration{}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		was, known := before[g.ID]
		l.busy[g.ID] = g.Busy
		if known {
			g.Busy = was + time.Duration(float64(g.Busy-was)*float64(end-l.at)/float64(at-l.at))
		}
		g.Period = driverPeriod
	}
	newest := l.at
	l.at = at
	switch {
	case before == nil: // its first reading
		return
	case end <= newest:
		s.GPUs = nil
	}
	s.At.Wall, s.At.Mono = s.At.Wall.Add(end-at), end
}

// without removes the evidence from an entry of a recording.
func (l *lack) without(e *recording.Entry) {
	if e.Sample == nil {
		return
	}
	switch lacks := l.Evidence; lacks {
	case Moments:
		l.resample(e)
	case Pressure:
		e.Sample.Pressures = nil
	case Disks:
		e.Sample.Disks = nil
	case Reads, Threads:
		for i := range e.Sample.Jobs {
			lacks.blind(&e.Sample.Jobs[i])
		}
	}
}

func (lacks Evidence) blind(j *sample.Job) {
	if lacks == Reads {
		j.HasIO, j.ReadBytes, j.ReadChars, j.WriteBytes = false, 0, 0, 0
	}
	j.ReaderTime, j.ReaderWork, j.InReads = 0, 0, 0 // readers are found by their reads
	if lacks == Threads {
		j.Leaders, j.LeaderTime, j.LeaderReady = 0, 0, 0
	}
}

// Lacking is the score of a replay for each kind of evidence that it left out.
type Lacking struct {
	Evidence Evidence
	Score    *Score
}

// ReplayWithout replays all recordings of a folder once for each kind of evidence, without it.
func ReplayWithout(folder string, wanted *regexp.Regexp) (all []Lacking, err error) {
	for _, lacks := range AllEvidence {
		results, err := replay(folder, wanted, lacks)
		if err != nil {
			return nil, err
		}
		all = append(all, Lacking{lacks, Sum(results)})
	}
	return all, nil
}

// WithoutTable formats how many verdicts are right, unknown and wrong without each kind of evidence.
func WithoutTable(all []Lacking) string {
	var b strings.Builder
	fmt.Fprintln(
		&b,
		"| without | right | unknown instead | wrong | storage_bound where the GPU was busy | "+
			"ledger error, median and 95 of 100 |",
	)
	fmt.Fprintln(&b, "|---|---|---|---|---|---|")
	for _, l := range all {
		right, unknown, wrong := l.Score.outcome()
		fmt.Fprintf(
			&b,
			"| %s | %d | %d | %d | %d | %s, %s points |\n",
			l.Evidence,
			right,
			unknown,
			wrong,
			l.Score.FalseStorage,
			points(l.Score.LedgerP50),
			points(l.Score.LedgerP95),
		)
	}
	return b.String()
}

// outcome counts the windows that are not void.
func (s *Score) outcome() (right, unknown, wrong int) {
	for _, r := range s.Cases {
		switch {
		case r.Void != "":
		case r.Right():
			right++
		case r.Got.Verdict == window.Unknown:
			unknown++
		default:
			wrong++
		}
	}
	return right, unknown, wrong
}

func points(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100**share)
}
