package schedule

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// partial is a Tracing that lacks something.
type partial struct {
	Tracing
	what []string
}

func (l *partial) Lacks() []string { return l.what }

// A Source that was refused follows nothing, and does after an attempt that succeeds. One that lacks a part is replaced
// by one that lacks less, and its jobs are followed on.
func TestRefusedAtFirst(t *testing.T) {
	needs(t)
	no := errors.New("a policy forbids it")
	left := [][]string{nil, {"a", "b"}, {"a", "b"}, {"a"}} // of each attempt
	attempts := 0
	s, err := NewFrom(func() (Tracing, error) {
		attempts++
		if attempts == 1 {
			return nil, no
		}
		tracing, err := Local("")()
		if err != nil {
			return nil, err
		}
		return &partial{tracing, left[min(attempts, len(left))-1]}, nil
	})
	if !errors.Is(err, no) || !errors.Is(s.Refused(), no) || s.Lacks() != nil {
		t.Fatalf("got %v, %v, lacking %v; want %v", err, s.Refused(), s.Lacks(), no)
	}
	defer func() { _ = s.Close() }()
	pids := []int{os.Getpid()}
	if err := s.Follow("job", pids); !errors.Is(err, no) {
		t.Fatalf("got %v, want %v", err, no)
	}
	read := func() *sample.Sample {
		t.Helper()
		var reading sample.Sample
		if err := s.Read(&reading); err != nil {
			t.Fatal(err)
		}
		return &reading
	}
	if reading := read(); reading.Schedule != nil || attempts != 1 {
		t.Fatalf("got events %v and %d attempts, want none and no other one", reading.Schedule, attempts)
	}
	retry := func(want []string) {
		t.Helper()
		before := attempts
		s.Retry()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			read()
			s.mu.Lock()
			over := s.again.coming == nil && attempts > before
			s.mu.Unlock()
			if over {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the attempt does not end")
			}
		}
		if s.Refused() != nil || !slices.Equal(s.Lacks(), want) {
			t.Errorf("got %v, lacking %v; want it to follow, lacking %v", s.Refused(), s.Lacks(), want)
		}
	}
	retry([]string{"a", "b"})
	if err := s.Follow("job", pids); err != nil {
		t.Fatal(err)
	}
	retry([]string{"a", "b"}) // no better
	retry([]string{"a"})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if reading := read(); reading.Schedule != nil && len(reading.Schedule.Events) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("got no events, want those of the job that was followed before")
		}
	}
}
