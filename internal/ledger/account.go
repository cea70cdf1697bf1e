package ledger

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// sharedIOTime is how long a job's last I/O explains pressure that the job shares with others. A single long read is
// counted only when it returns.
const sharedIOTime = time.Second

// flushingShare is the share of pressure from which the last checkpoint is assumed to be still on its way to the disk.
const flushingShare = 0.1

// account keeps the running totals of one target.
type account struct {
	target Target
	totals history.LedgerTotals
	at     time.Duration // end of the last cell
	opened bool          // levels and at are set
	levels levels        // at the end of the last cell, or of one before it: see addCell
	since  time.Duration // end of that one

	schedule schedule // by events
	moments  schedule // where these are missing

	spin    spin
	gains   gains
	lastIO  time.Duration // end of the last cell with I/O of the job itself
	disk    string        // the disk that the job read from last; "" for none of this machine
	writing bool          // the job's last I/O was a checkpoint, which is still being flushed
}

func newAccount(t Target) *account {
	return &account{target: t, totals: history.LedgerTotals{ID: t.ID(), HasGain: t.Job != ""}}
}

// closeCell ends a cell at p, where the machine has these levels. The first call opens the account there. See addCell
// for passes.
func (a *account) closeCell(h *history.History, p history.Point, host *hostLevels, passes bool) {
	if !a.opened {
		a.levels, a.since, a.at, a.opened = a.read(h, p, host), p.At, p.At, true
		if (a.schedule.timeline != nil || a.moments.timeline != nil) && a.target.Job != "" {
			// The history keeps a column from its first row on, and a window may begin before the first cell ends.
			a.totals.Scheduled = &history.Scheduled{}
		}
		return
	}
	if p.At > a.at {
		a.addCell(h, p, host, passes)
	}
}

// extrapolate returns the totals at p and leaves the account as it is. It uses cells of a length up to complete, where
// every source but the GPUs has readings. The rest is one piece, for there are no finer readings.
func (a *account) extrapolate(
	h *history.History, p history.Point, length, complete time.Duration,
) history.LedgerTotals {
	ahead := *a
	ahead.schedule.names, ahead.moments.names = nil, nil
	ahead.schedule.cells(history.Point{})
	ahead.moments.cells(history.Point{})
	for p.At-ahead.at > length*3/2 && p.At-ahead.at < maxBacklog && ahead.at+length <= complete {
		next := history.Point{At: ahead.at + length}
		host := readHost(h, next)
		ahead.addCell(h, next, &host, false)
	}
	if p.At > ahead.at {
		host := readHost(h, p)
		ahead.addCell(h, p, &host, false)
	}
	return ahead.totals
}

// addCell divides the time from the end of the last cell to p, and adds the parts to the totals. A cell that passes, or
// that moments divide, is not estimated if all of it is known.
func (a *account) addCell(h *history.History, p history.Point, host *hostLevels, passes bool) {
	if p.At <= a.at {
		return
	}
	of, dark := a.scheduled(h, p)
	if dark > 0 || !passes && !a.moments.begun {
		a.estimate(h, p, host, &of, dark)
	}
	a.totals.Busy += seconds(of.busy)
	a.totals.Storage += seconds(of.storage)
	a.totals.CPU += seconds(of.cpu)
	a.totals.Gain += seconds(of.gain + a.gains.take(of.could, of.room))
	a.at = p.At
}

// estimate adds dark seconds of the time up to p to its parts: as the counters divide the time since they were last
// looked up. It learns from them in any case.
func (a *account) estimate(h *history.History, p history.Point, host *hostLevels, of *parts, dark float64) {
	now := a.read(h, p, host)
	dt := (p.At - a.since).Seconds()
	c := a.cell(h, now, p, dt)
	if c.leaders > 0 && c.hasGPU {
		waited := c.leaderWaited()
		a.spin.add(&c, waited)
		c.spins = a.spin.spins()
		c.overlap = a.spin.overlap(&c, waited)
	}
	if dark > 0 {
		of.add(c.split(), dark/dt)
	}
	a.levels, a.since = now, p.At
}

// cell returns the evidence of the dt seconds up to p.
func (a *account) cell(h *history.History, now levels, p history.Point, dt float64) cell {
	c := a.levels.until(now, dt, a.target)
	if c.hasGPU {
		c.period = h.SamplePeriod(a.target.GPU).Seconds()
	}
	if fetched := now.fetched - a.levels.fetched; fetched > 0 {
		c.queue, c.onDisk, a.disk = ownQueue(h, history.Point{At: a.since}, p, fetched)
	} else if c.shared && a.disk != "" {
		c.onDisk, c.between = weighted(h, a.disk, history.Point{At: a.since}, p), true
	}
	if a.target.Job != "" && !a.target.Own {
		if a.levels.ownIO(now, a.target.Remote) {
			a.lastIO = p.At
		}
		c.ownIO = a.lastIO > 0 && p.At-a.lastIO <= sharedIOTime
	}
	a.writing = a.levels.wrote(now) || a.writing && c.some > flushingShare*dt
	c.writing = a.writing
	return c.perLeader()
}

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// evidence is what divides the account's time now.
func (a *account) evidence() *schedule {
	if a.moments.begun {
		return &a.moments
	}
	return &a.schedule
}
