package agent

import "time"

const (
	shortestSteps = 10 * time.Second // a window of steps, if its number is not set
	manySteps     = 100              // windows of one length, after which they become longer
)

// stepWindows decides where windows of steps begin and end. Several ranks may print the same steps.
//
// A window has 1, 2, 5, 10, 20 or more steps: the first of these numbers that takes about ten seconds. After a hundred
// windows it is the next one, so that a week of training has hundreds of windows and not thousands. The zero value is
// ready.
type stepWindows struct {
	size  int  // steps of a window; 0 while it is not known
	fixed bool // the user's

	open   bool
	origin int           // the training's first step
	first  int           // of the window
	newest int           // the highest of the window
	began  time.Duration // of the window
	last   int           // how many steps the window that ended last had, or has so far
	count  int           // ended windows of this size
}

// reached is called with each step that is printed. It reports whether a window ends with it, and one begins.
func (s *stepWindows) reached(step int, at time.Duration) (ends, begins bool) {
	switch {
	case !s.open:
		s.open = true
		s.origin = step
		s.begin(step, at)
		return false, true
	case step <= s.origin && s.first > s.origin: // a new training
		s.origin = step
		s.begin(step, at)
		return true, true
	}
	s.newest = max(s.newest, step)
	s.last = s.newest - s.first
	took := at - s.began
	switch {
	case s.size == 0 && took < shortestSteps:
		return false, false
	case s.size == 0:
		s.size = atLeast(s.newest - s.first)
	}
	if s.newest < s.first-s.first%s.size+s.size {
		return false, false
	}
	if !s.fixed && took < shortestSteps/2 { // the first steps were slow
		s.size, s.count = atLeast(s.size+1), 0
		return false, false
	}
	s.begin(s.newest, at)
	if s.count++; s.count == manySteps && !s.fixed {
		s.size, s.count = atLeast(s.size+1), 0
	}
	return true, true
}

func (s *stepWindows) begin(step int, at time.Duration) {
	s.first, s.newest, s.began = step, step, at
}

// atLeast returns the smallest of 1, 2, 5, 10, 20, 50 and so on that is n or more.
func atLeast(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, size := range []int{unit, 2 * unit, 5 * unit} {
			if size >= n {
				return size
			}
		}
	}
}
