package agent

import (
	"os"
	"sync"
	"time"
)

// streams carry the program's output to where it belongs, byte for byte, and show its lines to a follower on the way.
//
// Where our own output is a terminal, the program gets one too (a pty in raw mode, so that nothing is translated
// twice), and progress bars still draw. It inherits our standard input, session and process group: job control,
// ^C and ^Z work as without us.
type streams struct {
	all     []*pipe // one where both outputs are the same terminal, so that their order is kept
	stdout  *pipe
	stderr  *pipe
	copying sync.WaitGroup
}

func openStreams(stdout, stderr *os.File) (*streams, error) {
	s := &streams{}
	var err error
	if s.stdout, err = openPipe(stdout); err != nil {
		return nil, err
	}
	s.all = append(s.all, s.stdout)
	if s.stdout.isTerminal && sameFile(stdout, stderr) {
		s.stderr = s.stdout
		return s, nil
	}
	if s.stderr, err = openPipe(stderr); err != nil {
		s.closeAll()
		return nil, err
	}
	s.all = append(s.all, s.stderr)
	return s, nil
}

func sameFile(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// resize gives the program's terminals the size of ours, and says whether one had another.
func (s *streams) resize() (changed bool) {
	for _, p := range s.all {
		changed = p.resize() || changed
	}
	return changed
}

// start begins to copy. It is called when the program has its own copies of the write ends.
func (s *streams) start(line func([]byte)) {
	for _, p := range s.all {
		_ = p.write.Close()
		s.copying.Go(func() { p.copy(line) })
	}
}

// finish is called when the program has exited, and waits until its output has been passed on. A process that it left
// behind and that keeps the output open is waited for while it prints, but not for long; held says that there is one.
func (s *streams) finish() (held bool) {
	now := time.Now()
	for _, p := range s.all {
		p.exited.Store(&now)
		p.hurry()
	}
	s.copying.Wait()
	for _, p := range s.all {
		held = held || p.held
	}
	return held
}

func (s *streams) closeAll() {
	for _, p := range s.all {
		_ = p.read.Close()
		_ = p.write.Close()
	}
}
