package agent

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/internal/progress"
)

// streams carry the program's output to where it belongs, byte for byte, and show its lines to a follower on the way.
//
// Where our own output is a terminal, the program gets one too (a pty in raw mode, so that nothing is translated
// twice), and progress bars still draw. It inherits our standard input, session and process group: job control,
// ^C and ^Z work as without us.
type streams struct {
	terminal *pipe // shared by stdout and stderr where both are the terminal
	all      []*pipe
	stdout   *os.File // the program's ends
	stderr   *os.File
	copying  sync.WaitGroup
}

// pipe is one way from the program to one of our own outputs.
type pipe struct {
	read, write *os.File
	to          *os.File
	isTerminal  bool
	exited      atomic.Bool // the program has: what is left to read must come soon
}

// quiet is for how long the output may be silent, after the program's exit, before a grandchild that still holds it
// open is no longer waited for.
const quiet = time.Second

func openStreams(stdout, stderr *os.File) (*streams, error) {
	s := &streams{}
	var err error
	if s.stdout, err = s.open(stdout); err == nil {
		s.stderr, err = s.open(stderr)
	}
	if err != nil {
		s.closeAll()
		return nil, err
	}
	return s, nil
}

func (s *streams) open(to *os.File) (*os.File, error) {
	p := &pipe{to: to, isTerminal: term.IsTerminal(int(to.Fd()))}
	if p.isTerminal && s.terminal != nil {
		return s.terminal.write, nil // one terminal: the order of the two is kept
	}
	var err error
	if p.isTerminal {
		p.read, p.write, err = pty.Open()
	} else {
		p.read, p.write, err = os.Pipe()
	}
	if err != nil {
		return nil, err
	}
	s.all = append(s.all, p)
	if p.isTerminal {
		s.terminal = p
		if _, err := term.MakeRaw(int(p.write.Fd())); err != nil {
			return nil, err
		}
		s.resize()
	}
	return p.write, nil
}

func (s *streams) stdoutIsTerminal() bool { return s.terminal != nil && s.terminal.write == s.stdout }

// resize gives the program's terminal the size of ours.
func (s *streams) resize() {
	if s.terminal != nil {
		_ = pty.InheritSize(s.terminal.to, s.terminal.read) // a terminal without a size is still one
	}
}

// start begins to copy. It is called when the program has its own copies of the write ends.
func (s *streams) start(line func([]byte)) {
	for _, p := range s.all {
		_ = p.write.Close()
		s.copying.Add(1)
		go func() {
			defer s.copying.Done()
			p.copy(line)
		}()
	}
}

// copy passes everything on before it looks at it. When our own output is gone (a closed pipe, a full disk) it stops
// reading, and the program gets the error that it would have got from it: a broken pipe.
func (p *pipe) copy(line func([]byte)) {
	lines := progress.NewLines(line)
	defer lines.Close()
	defer func() { _ = p.read.Close() }()
	buf := make([]byte, 32<<10)
	for {
		if p.exited.Load() {
			p.hurry() // only now: the write before may have taken long
		}
		n, err := p.read.Read(buf)
		if n > 0 {
			if _, failed := p.to.Write(buf[:n]); failed != nil {
				return
			}
			_, _ = lines.Write(buf[:n]) // never fails
		}
		if err != nil {
			return // io.EOF; EIO where a terminal's last user left; a deadline after the program's exit
		}
	}
}

// finish waits until all output has been passed on. A grandchild that outlives the program and keeps its output open
// is waited for only as long as it prints.
func (s *streams) finish() {
	done := make(chan struct{})
	go func() {
		s.copying.Wait()
		close(done)
	}()
	for _, p := range s.all {
		p.exited.Store(true)
		p.hurry()
	}
	<-done
}

func (p *pipe) hurry() { _ = p.read.SetReadDeadline(time.Now().Add(quiet)) }

func (s *streams) closeAll() {
	for _, p := range s.all {
		_ = p.read.Close()
		_ = p.write.Close()
	}
}
