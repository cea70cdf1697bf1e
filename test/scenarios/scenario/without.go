package scenario

import (
	"fmt"
	"regexp"
	"strings"

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
)

// AllEvidence is what a replay can leave out.
var AllEvidence = [...]Evidence{Pressure, Reads, Threads, Disks}

// without removes the evidence from an entry of a recording.
func (lacks Evidence) without(e *recording.Entry) {
	if e.Sample == nil {
		return
	}
	switch lacks {
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
		j.LeaderTime, j.LeaderReady = 0, 0
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
