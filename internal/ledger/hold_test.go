package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// A wait that nothing interrupts is one, in however many blocks it is divided. One for other threads goes on after
// short looks whether these live.
func TestHolds(t *testing.T) {
	n := names{}
	at := time.Duration(0)
	for _, p := range []struct {
		kind   chain.PieceKind
		length time.Duration
	}{
		{chain.Storage, 2 * time.Second}, {chain.Storage, 2 * time.Second}, {chain.Work, ms},
		{chain.Storage, 2 * time.Second}, {chain.Work, ms}, {chain.Storage, 2 * time.Second},
		{chain.Other, 4 * time.Second}, {chain.Work, 10 * ms}, {chain.Other, 2 * time.Second}, {chain.Work, 90 * ms},
		{chain.Storage, 6 * time.Second},
	} {
		n.extend(&chain.Piece{From: at, To: at + p.length, Kind: p.kind}, chain.NewTimeline())
		at += p.length
	}
	want := []Hold{{To: 4 * time.Second}, {From: at - 12100*ms, To: at - 6090*ms, Others: true, looked: 10 * ms},
		{From: at - 6*time.Second, To: at}}
	if got := append(slices.Clone(n.holds), n.hold); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
