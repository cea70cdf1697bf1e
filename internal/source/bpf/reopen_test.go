package bpf

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// closer is something that was opened.
type closer struct {
	Tracing
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

// While a process is started again, attempts come once a second. After a refusal, they come after 1 and 10 minutes,
// then each hour.
func TestReopening(t *testing.T) {
	attempts := func(r *reopening, end time.Duration, fails error) (at []time.Duration) {
		for now := time.Hour; now <= time.Hour+end; now += time.Second {
			if r.retry > now {
				continue
			}
			at = append(at, now-time.Hour)
			for { // the attempt is over soon
				_, done, err := r.next(now, func() (Tracing, error) { return nil, fails })
				if done && !errors.Is(err, fails) {
					t.Fatalf("got %v, want %v", err, fails)
				}
				if done {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		return at
	}
	var refused reopening
	no := errors.New("a policy forbids it")
	refused.later(time.Hour, no)
	got := attempts(&refused, 132*time.Minute, no)
	want := []time.Duration{time.Minute, 11 * time.Minute, 71 * time.Minute, 131 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("after a refusal: got attempts at %v, want %v", got, want)
	}
	refused.now()
	if got := attempts(&refused, 0, no); len(got) != 1 {
		t.Errorf("at once: got attempts at %v, want one", got)
	}
	var ended reopening
	if got := attempts(&ended, 20*time.Second, Away("it has ended")); len(got) != 21 {
		t.Errorf("after an end: got attempts at %v, want one each second", got)
	}
}

// What was opened meanwhile is closed at the end.
func TestReopeningCloses(t *testing.T) {
	var r reopening
	c := &closer{}
	if _, done, err := r.next(time.Hour, func() (Tracing, error) { return c, nil }); err != nil {
		t.Fatalf("got %v, %v", done, err)
	} else if !done {
		r.close()
		if !c.closed {
			t.Error("it is open, want it closed")
		}
	}
}
