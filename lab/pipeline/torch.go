//go:build linux

package pipeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// assignment is the first line for a worker process. Each byte after it allows one more batch.
type assignment struct {
	Plan   *Plan
	Rate   float64
	Worker int // makes the batches Worker, Worker+Plan.Workers and so on
}

// torch makes batches in worker processes, which make whole batches in turn. A batch's bytes stay in its worker; the
// worker sends its checksum and log.
type torch struct {
	plan    *Plan
	workers []*workerProcess
}

// workerProcess is the training process's end of a worker.
type workerProcess struct {
	number  int
	command *exec.Cmd
	credits rawFile
	in      *bufio.Reader // from results
	results rawFile
	buffer  []byte
	message batchMessage
	line    timeline
	ahead   int // batches that it may begin
}

// pipeRoom is the maximum pipe size without privileges, in bytes. The logs of Prefetch batches wait in the pipe.
const pipeRoom = 1 << 20

func newTorch(plan *Plan, rate float64) (*torch, error) {
	t := &torch{plan: plan}
	for i := range plan.Workers {
		w, err := startWorker(i)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.workers = append(t.workers, w)
		line, err := json.Marshal(assignment{Plan: plan, Rate: rate, Worker: i})
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		if _, err := w.credits.Write(append(line, '\n')); err != nil {
			return nil, errors.Join(w.lost(err), t.close())
		}
	}
	for _, w := range t.workers {
		if _, _, err := w.read(); err != nil { // its first message: it is ready
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// startWorker runs on the training thread: the kernel kills the worker when that thread ends.
func startWorker(number int) (*workerProcess, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var toWorker, fromWorker [2]int
	if err := unix.Pipe2(toWorker[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.Pipe2(fromWorker[:], unix.O_CLOEXEC); err != nil {
		_, _ = unix.Close(toWorker[0]), unix.Close(toWorker[1])
		return nil, os.NewSyscallError("pipe2", err)
	}
	_, _ = unix.FcntlInt(uintptr(fromWorker[0]), unix.F_SETPIPE_SZ, pipeRoom)
	stdin, stdout := os.NewFile(uintptr(toWorker[0]), "credits"), os.NewFile(uintptr(fromWorker[1]), "results")
	command := exec.Command(executable)
	command.Args = os.Args // as in a forked process
	command.Env = append(os.Environ(), roleVariable+"="+roleWorker)
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = command.Start()
	_, _ = stdin.Close(), stdout.Close()
	w := &workerProcess{number: number, command: command, credits: rawFile(toWorker[1]), results: rawFile(fromWorker[0])}
	w.in = bufio.NewReaderSize(w.results, 64<<10)
	if err != nil {
		_, _ = w.credits.Close(), w.results.Close()
		return nil, fmt.Errorf("worker %d does not start: %w", number, err)
	}
	return w, nil
}

// lost returns why a worker does not answer.
func (w *workerProcess) lost(err error) error {
	return fmt.Errorf("worker %d has ended without a word, killed perhaps: %w", w.number, err)
}

// read returns the next message, or the worker's error.
func (w *workerProcess) read() (kind byte, data []byte, err error) {
	kind, data, w.buffer, err = readMessage(w.in, w.buffer)
	if err != nil {
		return 0, nil, w.lost(err)
	}
	if kind == kindError {
		return 0, nil, fmt.Errorf("worker %d: %s", w.number, data)
	}
	return kind, data, nil
}

func (t *torch) start() error {
	for i, w := range t.workers {
		w.ahead = (t.plan.Steps - i + t.plan.Workers - 1) / t.plan.Workers
		if err := w.allow(t.plan.Prefetch); err != nil {
			return err
		}
	}
	return nil
}

// allow lets the worker begin more batches, if any are left.
func (w *workerProcess) allow(batches int) error {
	batches = min(batches, w.ahead)
	w.ahead -= batches
	if batches <= 0 {
		return nil
	}
	if _, err := w.credits.Write(make([]byte, batches)); err != nil {
		return w.lost(err)
	}
	return nil
}

func (t *torch) take(batch int) (delivery, error) {
	w := t.workers[batch%len(t.workers)]
	_, data, err := w.read()
	if err != nil {
		return delivery{}, err
	}
	w.message.events = w.line.events
	if err := parseBatch(data, &w.message); err != nil {
		return delivery{}, err
	}
	w.line.events = w.message.events
	if w.message.batch != batch {
		return delivery{}, fmt.Errorf("worker %d made batch %d instead of %d", w.number, w.message.batch, batch)
	}
	made := w.line.now.at
	if n := len(w.line.events); n > 0 {
		made = w.line.events[n-1].at // it became idle
	}
	return delivery{made: made, sum: w.message.sum, by: []*timeline{&w.line}}, w.allow(1)
}

func (t *torch) totals() (sum totals) {
	for _, w := range t.workers {
		m := &w.message.totals
		sum.add(&m.accounts, m.records, m.bytes)
	}
	return sum
}

func (t *torch) close() error {
	var errs []error
	for _, w := range t.workers {
		if err := w.command.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	for _, w := range t.workers {
		_ = w.command.Wait() // an error: it was killed
		errs = append(errs, w.credits.Close(), w.results.Close())
	}
	t.workers = nil
	return errors.Join(errs...)
}
