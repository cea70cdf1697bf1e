package notice

import "sync"

// Kept is how many notices a Board keeps.
const Kept = 256

// Board keeps the newest notices for readers, each of which reads at its own pace. One that is too slow misses some, and
// is told how many; nobody waits for it. The zero value is ready. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	lines   [Kept][]byte // that of number n is at n % Kept
	next    uint64       // number of the next one, from 0
	changed chan struct{}
}

// Post adds a notice. It never waits.
func (b *Board) Post(n *Notice) {
	text := n.JSON()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines[b.next%Kept] = text
	b.next++
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Last is the number from which on the newest n are read.
func (b *Board) Last(n uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next - min(n, b.next, Kept)
}

// Read gives at most 32 lines from a number on, the number to go on from, and how many there were between that are not
// kept any more. Where there are none yet, changed is closed when there are.
func (b *Board) Read(from uint64) (lines [][]byte, next, missed uint64, changed <-chan struct{}) {
	const most = 32
	b.mu.Lock()
	defer b.mu.Unlock()
	if oldest := b.next - min(b.next, Kept); from < oldest {
		missed, from = oldest-from, oldest
	}
	for ; from < b.next && len(lines) < most; from++ {
		lines = append(lines, b.lines[from%Kept])
	}
	if len(lines) == 0 {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed = b.changed
	}
	return lines, from, missed, changed
}
