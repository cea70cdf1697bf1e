package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// A wait that nothing interrupts is one, in however many blocks it is divided.
func TestHolds(t *testing.T) {
	n := names{}
	at := time.Duration(0)
	for _, p := range []struct {
		kind   chain.PieceKind
		length time.Duration
	}{
		{chain.Storage, 2 * time.Second}, {chain.Storage, 2 * time.Second}, {chain.Work, ms},
		{chain.Storage, 2 * time.Second}, {chain.Work, ms}, {chain.Storage, 2 * time.Second}, {chain.Other, 5 * time.Second},
		{chain.Storage, 6 * time.Second},
	} {
		n.extend(&chain.Piece{From: at, To: at + p.length, Kind: p.kind})
		at += p.length
	}
	want := []Hold{{0, 4 * time.Second}, {at - 6*time.Second, at}}
	if got := append(slices.Clone(n.holds), n.hold); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
