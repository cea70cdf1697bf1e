package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// threads is evidence of what the threads of jobs did: a chain.Timeline of events, or chain.Moments.
type threads interface {
	// Knows reports whether there is anything of a thread, and Covers whether its time is known from a moment to another.
	Knows(tid int) bool
	Covers(tid int, from, to time.Duration) bool
	// Until is the moment up to which there is evidence, Gap the end of the last stretch without.
	Until() time.Duration
	Gap() time.Duration
	// Forget drops what was before a moment.
	Forget(before time.Duration)
	// Settled returns the moment up to which the pieces of a thread cannot change any more.
	Settled(tid int, patience time.Duration) time.Duration
	// Heir returns the thread whose time counts for one that has ended.
	Heir(tid int, at time.Duration) int

	// Walk appends what a thread's time came down to.
	Walk(tid int, from, to time.Duration, pieces []chain.Piece) []chain.Piece
	Sleeps(tid int, from, to time.Duration) []time.Duration
	ReasonKind(p *chain.Piece) chain.ReasonKind
	Reason(tid int, p *chain.Piece) chain.Reason

	// Lead takes note of how a leading thread waits for its GPU. TimesAt returns its clocks.
	Lead(tid int, gpu bool, spinning, sleeping float64)
	TimesAt(tid int) chain.Times
	Handovers(tid int) *chain.Handovers
}
