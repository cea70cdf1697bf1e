package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/gdamore/tcell/v3"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// Source returns the next frame. Calls do not overlap.
type Source func(context.Context) *Frame

// firstAfter is the length of the first interval: a person waits for it.
const firstAfter = 500 * time.Millisecond

// screen is a terminal that shows a view.
type screen struct {
	view   *View
	source Source
	tcell  tcell.Screen

	drawn *canvas // nil where all of the screen is to be drawn

	results chan result
	reads   bool // a call of source runs
	next    *time.Timer
	due     time.Time
}

// result is what a call of source returned.
type result struct {
	frame *Frame
	panic any
	stack []byte
}

// Run shows a view on the terminal until the user quits, ctx ends, or the source panics. It leaves the terminal as it
// was.
func Run(ctx context.Context, v *View, colors output.When, source Source) (err error) {
	options := []tcell.TerminfoScreenOption{
		tcell.OptNegotiation(false), // no answers of the terminal arrive late, and are read by the shell
		tcell.OptSanitizeContent(true),
	}
	switch colors {
	case output.Never:
		options = append(options, tcell.OptColors(0))
	case output.Always:
		options = append(options, tcell.OptColors(256))
	}
	terminal, err := tcell.NewTerminfoScreen(options...)
	if err == nil {
		err = terminal.Init()
	}
	if errors.Is(err, tcell.ErrNoCharset) {
		return errors.New("the characters of the locale are unknown: set LC_ALL to C.UTF-8, or to C")
	}
	if err != nil {
		return fmt.Errorf("the terminal cannot be used, check TERM: %w", err)
	}
	v.ASCII = terminal.CharacterSet() != "UTF-8"
	ctx, cancel := context.WithCancel(ctx)
	s := &screen{view: v, source: source, tcell: terminal, results: make(chan result, 1)}
	defer func() {
		cancel()
		terminal.Fini()
		if s.reads {
			<-s.results
		}
	}()
	return s.run(ctx)
}

func (s *screen) run(ctx context.Context) error {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, unix.SIGCONT)
	defer signal.Stop(goesOn)
	first := min(s.view.Interval, firstAfter)
	s.due = time.Now().Add(first)
	s.next = time.NewTimer(first)
	defer s.next.Stop()
	s.draw()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-goesOn: // another process has stopped us, and the shell has used the terminal
			if err := errors.Join(s.leave(), s.enter()); err != nil {
				return err
			}
		case <-s.next.C: // a paused view goes on measuring
			s.ask(ctx)
			s.plan()
		case r := <-s.results:
			if err := s.take(ctx, r); err != nil {
				return err
			}
		case e := <-s.tcell.EventQ():
			done, err := s.event(e, goesOn)
			if done || err != nil {
				return err
			}
		}
	}
}

// event applies a key, or a new size.
func (s *screen) event(e tcell.Event, goesOn <-chan os.Signal) (done bool, err error) {
	switch e := e.(type) {
	case *tcell.EventError:
		return true, fmt.Errorf("the terminal cannot be read: %w", e)
	case *tcell.EventResize:
		s.draw()
	case *tcell.EventKey:
		interval := s.view.Interval
		switch s.view.key(e) {
		case quit:
			return true, nil
		case stop:
			return false, s.stop(goesOn)
		case redraw:
			s.tcell.Sync()
		}
		if s.view.Interval != interval {
			s.due = time.Now()
			s.plan()
		}
		s.draw()
	}
	return false, nil
}

// plan sets the time of the next frame. The beat does not drift, and boundaries that have passed are skipped.
func (s *screen) plan() {
	interval := s.view.Interval
	s.due = s.due.Add(interval)
	if late := time.Since(s.due); late > 0 {
		s.due = s.due.Add(late - late%interval + interval)
	}
	s.next.Reset(time.Until(s.due))
}

// ask calls the source, unless a call runs.
func (s *screen) ask(ctx context.Context) {
	if s.reads {
		return
	}
	s.reads = true
	go func() {
		var r result
		defer func() {
			if r.panic = recover(); r.panic != nil {
				r.stack = debug.Stack()
			}
			s.results <- r
		}()
		r.frame = s.source(ctx)
	}()
}

// take shows what a call of the source returned.
func (s *screen) take(ctx context.Context, r result) error {
	s.reads = false
	if r.panic != nil {
		return fmt.Errorf("a fault of stallspan top: %v\n%s", r.panic, r.stack)
	}
	if ctx.Err() != nil {
		return nil
	}
	s.view.Add(r.frame)
	s.draw()
	return nil
}

func (s *screen) draw() {
	width, height := s.tcell.Size()
	c := s.view.draw(width, height)
	all := s.drawn == nil || s.drawn.width != width || s.drawn.height != height
	for i, at := range c.cells {
		if at.char != 0 && (all || at != s.drawn.cells[i]) { // tcell compares, too, but takes longer
			s.tcell.SetContent(i%width, i/width, at.char, nil, at.style)
		}
	}
	s.drawn = c
	s.tcell.Show()
}

// stop gives the terminal back and stops this program's process group, as ^Z does without us. It returns when the
// program goes on. SIGTSTP itself is not caught: Go would never again let it stop the program.
func (s *screen) stop(goesOn <-chan os.Signal) error {
	if err := s.leave(); err != nil {
		return err
	}
	_ = unix.Kill(0, unix.SIGTSTP)
	// A process group without a shell above it does not stop.
	const unstopped = 300 * time.Millisecond
	select {
	case <-goesOn:
	case <-time.After(unstopped):
	}
	return s.enter()
}

// leave gives the terminal back.
func (s *screen) leave() error {
	if err := s.tcell.Suspend(); err != nil {
		return fmt.Errorf("the terminal cannot be given back: %w", err)
	}
	return nil
}

// enter takes the terminal, and draws all of it.
func (s *screen) enter() error {
	if err := s.tcell.Resume(); err != nil {
		return fmt.Errorf("the terminal cannot be used again: %w", err)
	}
	s.drawn = nil
	s.tcell.Sync()
	s.draw()
	return nil
}
