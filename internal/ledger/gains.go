package ledger

// gains finds the time that readers would save without storage. In a single cell it is the smaller of two times: that
// by which the readers would be faster, and that for which the GPU waits for them. Queues between them move both to
// other cells, so each is kept for a while.
type gains struct{ could, room float64 } // s

// maxKept is how much is kept, in seconds: a few batches.
const maxKept = 2.0

// take adds the times of a cell, and returns the time saved.
func (g *gains) take(could, room float64) float64 {
	g.could, g.room = g.could+could, g.room+room
	saved := min(g.could, g.room)
	g.could, g.room = min(g.could-saved, maxKept), min(g.room-saved, maxKept)
	return saved
}
