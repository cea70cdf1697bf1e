package process

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// member is one process of a job.
type member struct {
	*proc

	now     counts // own and inherited
	base    counts // part of now from before the job was added
	based   bool   // base was set before the first reading
	unbased bool   // the bytes of base are not known yet
	reaped  counts // inherited part of now: exact for CPU time and faults, all bytes
	gain    counts // growth of reaped since the last reading, or since the one before if expects
	expects bool   // may inherit from a member that the last reading found gone
	adopted counts // part of now that was read in a member before

	fresh      bool   // not read yet
	ioReported bool   // ioError was reported
	lost       uint64 // number of the reading that found it gone; 0 before
	noted      bool   // its end is in job.ended
	resolved   bool   // its counters moved elsewhere, and it can be dropped
	nextFD     int    // start of the next scan of its open files
	ends       ends   // of pipes

	feeds    bool          // it is a feeder, or a child of one
	fedAt    time.Duration // Stamp.Mono of the last scan that found that it feeds the job
	joined   bool          // it ran before it fed the job: that time does not count
	listedAt uint64        // number of the round in which its children were listed; 0 if it was not traced then
	seenFDs  bool          // all of them were scanned once

	did judgement
}

// take takes over what the process has counted. It reports false if the process is gone. After an error the process may
// exist and keeps its counters.
func (m *member) take() (exists bool, err error) {
	if m.gone || m.failed != nil {
		return !m.gone, m.failed
	}
	if !m.expects {
		m.gain = counts{}
	}
	m.gain = m.gain.plus(m.proc.reaped.minus(m.reaped))
	m.reaped, m.now = m.proc.reaped, m.counts
	if m.unbased && m.hasIO { // what it read before is not known: it counts from here on
		m.base.takeBytes(m.now)
		m.unbased = false
	}
	return true, nil
}

// present reports whether it was alive at the last reading.
func (m *member) present() bool { return m.lost == 0 && !m.ended && !m.fresh }

// counted returns what the member adds to its job.
func (m *member) counted() counts { return m.now.minus(m.base) }

// sample returns the member's own counters, without those inherited from other members.
func (m *member) sample(job string) sample.Process {
	own := m.now.minus(m.adopted)
	return sample.Process{
		PID: m.pid, Job: job, CPUTime: duration(m.own),
		ReadBytes: own[readBytes], WriteBytes: own[writeBytes], HasIO: m.hasIO,
		Started: duration(m.start), Feeder: m.feeds,
	}
}
