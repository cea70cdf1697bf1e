package bpf

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
	what Refusals
}

func (l *partial) Lacks() Refusals { return l.what }

// A Source that was refused follows nothing, and does after an attempt that succeeds. One that lacks a part is replaced
// by one that lacks less, and its jobs are followed on.
func TestRefusedAtFirst(t *testing.T) {
	needs(t)
	no := errors.New("is refused by a policy")
	of := func(parts ...string) (all Refusals) {
		for _, part := range parts {
			all = append(all, Refusal{part, no})
		}
		return all
	}
	left := []Refusals{of(Threads), of("a", "b"), of("a", "b"), of("a"), of(DiskJobs), nil} // of each attempt
	attempts := 0
	s := NewFrom(func(want Wanted) (Tracing, error) {
		lacks := left[min(attempts, len(left)-1)]
		if attempts++; attempts == 1 {
			return &partial{newTracer("", Wanted{}, defaults), lacks}, nil
		}
		return &partial{newTracer("", want, defaults), lacks}, nil
	}, Wanted{Threads: true}, "")
	if !errors.Is(s.Refused(), no) {
		t.Fatalf("got %v, want %v", s.Refused(), no)
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
	retry := func(want Refusals) {
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
	retry(of("a", "b"))
	if err := s.Follow("job", pids); err != nil {
		t.Fatal(err)
	}
	retry(of("a", "b")) // no better
	retry(of("a"))
	retry(of("a")) // another part is no better
	retry(nil)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if reading := read(); reading.Schedule != nil && len(reading.Schedule.Events) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("got no events, want those of the job that was followed before")
		}
	}
}
