package wrap

import (
	"os"
	"sync"
	"time"

	"github.com/stallspan/stallspan/agent/internal/heir"
)

// streams copy the program's output to our own, byte for byte, and pass its lines to a follower.
//
// If our own output is a terminal, the program gets one too, so that progress bars still draw. It is a pty in raw mode,
// so that nothing is translated twice. The program inherits our standard input, session and process group: job control,
// ^C and ^Z work as without us.
type streams struct {
	all     []*pipe // a single one if both outputs are the same terminal, which keeps their order
	stdout  *pipe
	stderr  *pipe
	heir    *heir.Heir // passes on what comes after our end; nil if it cannot be started
	copying sync.WaitGroup
}

func openStreams(stdout, stderr *os.File) (*streams, error) {
	s := &streams{}
	var err error
	if s.stdout, err = openPipe(stdout); err != nil {
		return nil, err
	}
	s.all = append(s.all, s.stdout)
	s.stderr = s.stdout
	if !s.stdout.isTerminal || !sameFile(stdout, stderr) {
		if s.stderr, err = openPipe(stderr); err != nil {
			s.closeAll()
			return nil, err
		}
		s.all = append(s.all, s.stderr)
	}
	s.startHeir()
	return s, nil
}

// startHeir starts the heir. Without one, a program dies at its next output if we are killed.
func (s *streams) startHeir() {
	var outputs []heir.Output
	for _, p := range s.all {
		outputs = append(outputs, heir.Output{From: p.read, To: p.to})
	}
	s.heir, _ = heir.Start(outputs...)
	for number, p := range s.all {
		p.heir, p.number = s.heir, number
	}
}

func sameFile(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// resize gives the program's terminals the size of ours, and reports whether one changed.
func (s *streams) resize() (changed bool) {
	for _, p := range s.all {
		changed = p.resize() || changed
	}
	return changed
}

// start begins to copy. The program has its own copies of the write ends by then.
func (s *streams) start(hooks Hooks) {
	for _, p := range s.all {
		_ = p.write.Close()
		s.copying.Go(func() { p.copy(hooks) })
	}
}

// finish waits, after the program's exit, until its output has been passed on. held reports a process that was left
// running with the output open. Its output is passed on for a limited time.
func (s *streams) finish() (held bool) {
	now := time.Now()
	for _, p := range s.all {
		p.exited.Store(&now)
		p.limitRead()
	}
	s.copying.Wait()
	s.heir.Close()
	for _, p := range s.all {
		held = held || p.held
	}
	return held
}

func (s *streams) closeAll() {
	s.heir.Close()
	for _, p := range s.all {
		_ = p.read.Close()
		_ = p.write.Close()
	}
}
