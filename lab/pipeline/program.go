//go:build linux

package pipeline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Program is a running training program. Any goroutine may call Accelerator, PID and Close at any time. The other
// methods are for one goroutine, and return an error when the program ends.
type Program struct {
	command     *exec.Cmd
	requests    io.WriteCloser
	replies     chan reply // one per request
	ended       chan struct{}
	end         error // why it ended; valid once ended is closed
	life        *os.File
	accelerator *accelerator
	rate        float64

	closing sync.Once
	closed  error
}

// listen forwards the program's replies until it ends. Close waits for listen.
func (p *Program) listen(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			r = reply{Error: fmt.Sprintf("the training program says %q", line)}
		}
		select {
		case p.replies <- r:
		default: // no request is waiting
		}
	}
	err := p.command.Wait()
	p.accelerator.end()
	p.end = errors.New("the training program has ended")
	if err != nil {
		p.end = fmt.Errorf("the training program has ended: %w", err)
	}
}

// answer waits for the next reply. If ctx ends first it kills the program, because its work cannot be cancelled.
func (p *Program) answer(ctx context.Context) (reply, error) {
	select {
	case r := <-p.replies:
		return r, r.err()
	case <-ctx.Done():
		_ = p.command.Process.Kill()
		<-p.ended
		return reply{}, ctx.Err()
	case <-p.ended:
	}
	select { // its last reply
	case r := <-p.replies:
		return r, r.err()
	default:
		return reply{}, p.end
	}
}

func (r *reply) err() error {
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

func (p *Program) send(q request) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := p.requests.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the training program does not listen: %w", err)
	}
	return nil
}

func (p *Program) ask(ctx context.Context, q request) (reply, error) {
	if err := p.send(q); err != nil {
		return reply{}, err
	}
	return p.answer(ctx)
}

// Prepare opens the plan's files, starts its workers and waits until all of them are ready. Nothing is read yet.
func (p *Program) Prepare(plan Plan) error {
	_, err := p.ask(context.Background(), request{Plan: &plan, Rate: p.rate})
	return err
}

// Begin starts what was prepared.
func (p *Program) Begin() error { return p.send(request{Go: true}) }

// End waits until the work is done. It kills the program if ctx ends first.
func (p *Program) End(ctx context.Context) (Truth, error) {
	r, err := p.answer(ctx)
	if err != nil || r.Truth == nil {
		return Truth{}, err
	}
	return *r.Truth, nil
}

// Go calls Begin and End.
func (p *Program) Go(ctx context.Context) (Truth, error) {
	if err := p.Begin(); err != nil {
		return Truth{}, err
	}
	return p.End(ctx)
}

// StartNoise starts a neighbour's work. It returns when all its threads exist.
func (p *Program) StartNoise(n Noise) error {
	_, err := p.ask(context.Background(), request{Noise: &n})
	return err
}

// StopNoise stops it after the operations in flight.
func (p *Program) StopNoise() (NoiseTruth, error) {
	r, err := p.ask(context.Background(), request{Stop: true})
	if err != nil || r.Noise == nil {
		return NoiseTruth{}, err
	}
	return *r.Noise, nil
}

// PID returns the process id; the training thread leads that process.
func (p *Program) PID() int { return p.command.Process.Pid }

// Accelerator returns a source for the program's accelerator, "emulated-0". Its value stays after Close.
func (p *Program) Accelerator() sample.Source { return p.accelerator }

// lastWords is the time limit of a quit request. farewell is the time limit of killed processes: one that waits for a
// disk ends when the disk answers.
const (
	lastWords = 2 * time.Second
	farewell  = 30 * time.Second
)

// Close ends the program and its workers, and waits for them. It kills a plan that still runs after lastWords.
func (p *Program) Close() error {
	p.closing.Do(func() { p.closed = p.stop() })
	return p.closed
}

func (p *Program) stop() error {
	_ = p.send(request{Quit: true})
	select {
	case <-p.ended:
	case <-time.After(lastWords):
		_ = p.command.Process.Kill()
	}
	err := p.gone()
	_ = p.requests.Close()
	return errors.Join(err, p.accelerator.close(), p.life.Close())
}

// gone waits until no process of the program is left: each holds the other end of life open.
func (p *Program) gone() error {
	_ = p.life.SetReadDeadline(time.Now().Add(farewell))
	if _, err := p.life.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf(
			"processes of training program %d still wait for their disk %v after they were killed: %w",
			p.PID(),
			farewell,
			err,
		)
	}
	<-p.ended
	return nil
}
