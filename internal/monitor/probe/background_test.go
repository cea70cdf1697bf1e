package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A task that panics is reported and counted, its caller gets nothing, and its place is free again.
func TestPanicOfATask(t *testing.T) {
	before := sample.Panics()
	reports := make(chan error, maxRunning)
	p := New("", nil, nil, func(err error) { reports <- err })
	for range maxRunning {
		if got := await(p, "uid 1", time.Millisecond, func() int { panic("for the test") }); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
		if err := <-reports; !strings.Contains(err.Error(), "for the test") {
			t.Errorf("got %v, want the panic", err)
		}
	}
	if got := await(p, "uid 1", time.Minute, func() int { return 7 }); got != 7 {
		t.Errorf("got %d after the panics, want 7", got)
	}
	if got := sample.Panics() - before; got != maxRunning {
		t.Errorf("got %d panics, want %d", got, maxRunning)
	}
	p.Stop()
}
