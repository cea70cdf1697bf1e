package alert

import (
	"fmt"
	"sync"
	"testing"
)

func line(i int) Posted { return Posted{Line: fmt.Appendln(nil, i), Client: fmt.Sprint("uid ", i)} }

func TestBoard(t *testing.T) {
	var b Board
	if from := b.Last(10); from != 0 {
		t.Errorf("empty: got first event %d, want 0", from)
	}
	events, next, missed, changed := b.Read(0)
	if events != nil || next != 0 || missed != 0 || changed == nil {
		t.Fatalf("empty: got %v, next %d, missed %d, changed %v, want a channel only", events, next, missed, changed)
	}
	b.Post(line(0))
	<-changed
	for i := 1; i < 1000; i++ {
		b.Post(line(i))
	}
	if from := b.Last(10); from != 990 {
		t.Errorf("got first event %d, want 990", from)
	}
	events, next, missed, changed = b.Read(0)
	if len(events) != 32 || missed != 1000-BoardSize || next != 1000-BoardSize+32 || changed != nil {
		t.Errorf("got %d events, next %d, missed %d, changed %v, want 32, 776, 744, nil", len(events), next, missed, changed)
	}
	if first := events[0]; string(first.Line) != "744\n" || first.Client != "uid 744" {
		t.Errorf("got the first event %s of %s, want 744 of uid 744", first.Line, first.Client)
	}
}

// Every reader gets each number once, or as missed, while others write.
func TestBoardReaders(t *testing.T) {
	const all = 10000
	var b Board
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var from, read, missed uint64
			for read+missed < all {
				events, next, left, changed := b.Read(from)
				from, missed, read = next, missed+left, read+uint64(len(events))
				if from != read+missed {
					t.Errorf("got next %d after %d read and %d missed, want their sum", from, read, missed)
					return
				}
				if changed != nil {
					<-changed
				}
			}
		})
	}
	for i := range all {
		b.Post(line(i))
	}
	readers.Wait()
}

// A client that posts more than there is room for drives out neither the machine's events nor those of others.
func TestBoardOfANoisyClient(t *testing.T) {
	var b Board
	b.Post(Posted{Line: []byte("lost"), Lane: ""})
	b.Post(Posted{Line: []byte("slow"), Lane: "of uid 1"})
	for range 2 * BoardSize {
		b.Post(Posted{Line: []byte("noise"), Lane: "of uid 2"})
	}
	events, _, missed, _ := b.Read(b.Last(BoardSize))
	if string(events[0].Line) != "lost" || string(events[1].Line) != "slow" || string(events[2].Line) != "noise" ||
		missed != BoardSize+2 {
		t.Errorf("got %q, and %d missed; want the machine's event, that of another client, and then %d missed", events[:3],
			missed, BoardSize+2)
	}
}
