package alert

import "sync"

// BoardSize is how many events a Board holds.
const BoardSize = 256

// Posted is an event on a Board.
type Posted struct {
	Line   []byte // of JSON
	Client string // whose window it is about, as window.Window.Client; "" for other events
}

// Board holds the newest events. Each reader reads at its own pace; a slow reader misses events and
// gets their number. Post never waits. The zero value is ready. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	events  [BoardSize]Posted // event n is at n % BoardSize
	next    uint64            // number of the next event, from 0
	changed chan struct{}
}

// Post adds an event.
func (b *Board) Post(e Posted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[b.next%BoardSize] = e
	b.next++
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Last returns the number of the first of the newest n events.
func (b *Board) Last(n uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next - min(n, b.next, BoardSize)
}

// Read returns at most 32 events from number from on, the number to continue from, and how many events in between are
// no longer held. If there are no events yet, changed is closed when there are.
func (b *Board) Read(from uint64) (events []Posted, next, missed uint64, changed <-chan struct{}) {
	const most = 32
	b.mu.Lock()
	defer b.mu.Unlock()
	if oldest := b.next - min(b.next, BoardSize); from < oldest {
		missed, from = oldest-from, oldest
	}
	for ; from < b.next && len(events) < most; from++ {
		events = append(events, b.events[from%BoardSize])
	}
	if len(events) == 0 {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed = b.changed
	}
	return events, from, missed, changed
}
