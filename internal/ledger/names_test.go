package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

func waited(n *names, from, to time.Duration, name string, seconds float64) {
	one := named{chain.Reason{Kind: chain.ForNetwork, Name: name}, seconds, 1}
	n.all = add(n.all, one)
	n.remember(namedTime{from, to, one})
}

// TestNamesAreOfTheWindow: what was waited for before or after a window does not name it.
func TestNamesAreOfTheWindow(t *testing.T) {
	const s = time.Second
	n := &names{}
	waited(n, 0, 60*s, "receiving from a", 60)
	waited(n, 60*s, 61*s, "receiving from b", 1)
	waited(n, 61*s, 62*s, "receiving from b", 0.6)
	waited(n, 61*s, 62*s, "receiving from c", 0.4)
	for want, window := range map[string][2]time.Duration{
		"receiving from a":            {10 * s, 20 * s},
		"receiving from b":            {60 * s, 61 * s},
		"receiving from b and others": {61 * s, 62 * s},
	} {
		if got := n.waits(window[0], window[1], nil).Name(chain.ForNetwork); got != want {
			t.Errorf("%v: got %q, want %q", window, got, want)
		}
	}
	if got := (&names{}).waits(0, s, nil).Name(chain.ForNetwork); got != "" {
		t.Errorf("got %q where nothing was waited for, want nothing", got)
	}
}

func TestNamesAreBounded(t *testing.T) {
	n := &names{}
	for i := range 10 * maxRecent {
		at := time.Duration(i) * time.Second
		waited(n, at, at+time.Second, fmt.Sprint("receiving from ", i), 1)
	}
	if len(n.recent) > maxRecent || len(n.all) > maxNames {
		t.Errorf("got %d and %d names, want at most %d and %d", len(n.recent), len(n.all), maxRecent, maxNames)
	}
	if got := n.waits(0, time.Second, nil).Name(chain.ForNetwork); got == "" {
		t.Error("got no name for a time that is not remembered, want one of the last minutes")
	}
}
