//go:build linux

package pipeline

import "time"

// delivery is a batch for a step.
type delivery struct {
	made time.Duration // CLOCK_MONOTONIC
	sum  uint32
	by   []*timeline // the workers that made it, or may have made it, with their phases until then
}

// totals sums up the work of workers.
type totals struct {
	accounts [phases]account
	records  int
	bytes    int64
}

func (t *totals) add(accounts *[phases]account, records int, bytes int64) {
	for i, a := range accounts {
		t.accounts[i].all += a.all
		t.accounts[i].on += a.on
		t.accounts[i].ready += a.ready
	}
	t.records += records
	t.bytes += bytes
}

// maker makes a plan's batches. The training thread calls it.
type maker interface {
	// start lets the workers begin.
	start() error
	// take waits for the next batch and frees its place in the queue.
	take(batch int) (delivery, error)
	// totals is valid after the last batch.
	totals() totals
	// close stops the workers and waits for them.
	close() error
}
