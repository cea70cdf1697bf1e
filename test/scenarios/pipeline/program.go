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

// Program is a training program that runs. Accelerator, PID and Close may be called by any goroutine at any time; the
// others are for one goroutine, and each ends with an error when the program ends.
type Program struct {
	command     *exec.Cmd
	requests    io.WriteCloser
	replies     chan reply // one for each request
	ended       chan struct{}
	end         error // why it ended; good once ended is closed
	life        *os.File
	accelerator *accelerator
	rate        float64

	closing sync.Once
	closed  error
}

// listen passes the program's replies on until it ends. Close waits for it.
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
		default: // nobody asked
		}
	}
	err := p.command.Wait()
	p.accelerator.end()
	p.end = errors.New("the training program has ended")
	if err != nil {
		p.end = fmt.Errorf("the training program has ended: %w", err)
	}
}

// answer waits for the next reply. When ctx ends first, the program is killed: what it does cannot be taken back.
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
	select { // its last words
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

// Begin lets what was prepared run.
func (p *Program) Begin() error { return p.send(request{Go: true}) }

// End waits until it has run. When ctx ends first, the program is killed.
func (p *Program) End(ctx context.Context) (Truth, error) {
	r, err := p.answer(ctx)
	if err != nil || r.Truth == nil {
		return Truth{}, err
	}
	return *r.Truth, nil
}

// Go is Begin and End.
func (p *Program) Go(ctx context.Context) (Truth, error) {
	if err := p.Begin(); err != nil {
		return Truth{}, err
	}
	return p.End(ctx)
}

// StartNoise begins to disturb others. It returns when all its threads exist.
func (p *Program) StartNoise(n Noise) error {
	_, err := p.ask(context.Background(), request{Noise: &n})
	return err
}

// StopNoise ends it, once the operations that are under way are over.
func (p *Program) StopNoise() (NoiseTruth, error) {
	r, err := p.ask(context.Background(), request{Stop: true})
	if err != nil || r.Noise == nil {
		return NoiseTruth{}, err
	}
	return *r.Noise, nil
}

// PID is the program's process, whose leader is the training thread.
func (p *Program) PID() int { return p.command.Process.Pid }

// Accelerator reads the program's accelerator, "emulated-0". Once the program is closed it stays as it was.
func (p *Program) Accelerator() sample.Source { return p.accelerator }

// lastWords is how long a program that is told to quit may take, and farewell how long killed processes may: one that
// waits for a disk ends when the disk answers.
const (
	lastWords = 2 * time.Second
	farewell  = 30 * time.Second
)

// Close ends the program and its workers, and waits for them. A plan that still runs has lastWords, and is then killed.
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

// gone waits until no process of the program is left: each holds the other end of life.
func (p *Program) gone() error {
	_ = p.life.SetReadDeadline(time.Now().Add(farewell))
	if _, err := p.life.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("processes of training program %d still wait for their disk %v after they were killed: %w", p.PID(), farewell, err)
	}
	<-p.ended
	return nil
}
