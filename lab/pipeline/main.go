//go:build linux

package pipeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The role of this process, in its environment.
const (
	roleVariable = "STALLSPAN_PIPELINE"
	roleProgram  = "program"
	roleWorker   = "worker"
)

// The program's files after the standard ones. Each of its processes keeps lifeFd open until it ends.
const (
	pageFd = 3
	lifeFd = 4
)

// The main goroutine stays on the first thread of the process, because a trainer's training thread leads its process.
func init() {
	if os.Getenv(roleVariable) != "" {
		runtime.LockOSThread()
	}
}

// Main runs the program and returns true in a process that Start started, and in its workers. An executable that calls
// Start must call Main first, and end when it returns true.
func Main() (ran bool) {
	switch os.Getenv(roleVariable) {
	case roleProgram:
		go dieWithBench()
		serve()
	case roleWorker:
		work(0, 1)
	default:
		return false
	}
	return true
}

// dieWithBench ends the program, and so its workers, when the bench has ended.
func dieWithBench() {
	fds := []unix.PollFd{{Fd: 0}}
	if _, err := retry(func() (int, error) { return unix.Poll(fds, -1) }); err == nil {
		os.Exit(1)
	}
}

// server answers the bench's requests.
type server struct {
	clock clock
	page  *page
	rate  float64
	job   job    // prepared
	noise *noise // running
}

// serve answers requests until a quit request.
func serve() {
	s := &server{clock: newClock()}
	out := rawFile(1)
	unix.CloseOnExec(pageFd)
	file := os.NewFile(pageFd, "accelerator")
	var err error
	s.page, _, err = mapPage(file)
	answer(out, reply{Ready: true}, err)
	in := bufio.NewReaderSize(rawFile(0), 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			answer(out, reply{}, err)
			continue
		}
		r, err := s.handle(&q)
		answer(out, r, err)
		if err := s.rest(&q, err); err != nil {
			fmt.Fprintln(os.Stderr, "training program: ", err)
		}
		if q.Quit {
			break
		}
	}
	runtime.KeepAlive(file)
}

func answer(out rawFile, r reply, err error) {
	if err != nil {
		r = reply{Error: err.Error()}
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, _ = out.Write(append(line, '\n')) // if the bench has ended, dieWithBench ends this process
	}
}

func (s *server) handle(q *request) (r reply, err error) {
	switch {
	case q.Plan != nil:
		return reply{Ready: true}, s.prepare(q.Plan, q.Rate)
	case q.Go && s.job == nil:
		return r, errors.New("nothing is prepared")
	case q.Go:
		t, err := s.job.run()
		return reply{Done: true, Truth: &t}, err
	case q.Noise != nil:
		s.noise, err = newNoise(q.Noise)
		return reply{Ready: true}, err
	case q.Stop && s.noise == nil:
		return r, errors.New("no noise is made")
	case q.Stop:
		t, err := s.noise.stop()
		return reply{Done: true, Noise: &t}, err
	case q.Quit:
		return reply{Done: true}, s.drop()
	}
	return r, errors.New("unknown request")
}

// rest cleans up after an answer, outside of the measured time.
func (s *server) rest(q *request, failed error) error {
	if q.Stop && s.noise != nil {
		s.noise = nil
	}
	if q.Go || failed != nil {
		return s.drop()
	}
	return nil
}

// drop closes what is prepared or running.
func (s *server) drop() error {
	var errs []error
	if s.job != nil {
		errs = append(errs, s.job.close())
		s.job = nil
	}
	if s.noise != nil {
		_, err := s.noise.stop()
		errs = append(errs, err)
		s.noise = nil
	}
	return errors.Join(errs...)
}

// prepare creates a job. Each of its threads gets a Go processor of its own, so that only the kernel schedules them.
// Garbage is collected now, because the collector is off while the job runs.
func (s *server) prepare(plan *Plan, rate float64) (err error) {
	if err := s.drop(); err != nil {
		return err
	}
	plan.fill()
	if err := plan.check(); err != nil {
		return err
	}
	if rate > 0 {
		s.rate = rate
	}
	if plan.Decode > 0 && s.rate == 0 {
		if s.rate, err = Calibrate(); err != nil {
			return err
		}
	}
	if processors := plan.Workers + runtime.NumCPU() + 2; runtime.GOMAXPROCS(0) < processors {
		runtime.GOMAXPROCS(processors)
	}
	runtime.GC()
	if plan.Load != "" {
		s.job, err = keep(newLoading(s.clock, plan, s.rate))
	} else {
		s.job, err = keep(newTraining(s.clock, s.page, plan, s.rate))
	}
	return err
}

// keep avoids a job interface that holds a nil pointer.
func keep[J job](j J, err error) (job, error) {
	if err != nil {
		return nil, err
	}
	return j, nil
}
