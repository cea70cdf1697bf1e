//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// jobs are the short jobs. read, mapped and write wait for the slow disk, sleep does not; child and thread wait for
// another process or thread that reads.
var jobs = []string{"read", "mapped", "write", "sleep", "child", "thread"}

const (
	dataName = "stallspan-short-data"
	page     = 4 << 10
)

// What a span of time was.
const (
	storage = "storage"
	work    = "work"
	sleep   = "sleep"
	wait    = "wait" // for the other thread or process
)

// span is a stretch of a thread's time, in ns of CLOCK_MONOTONIC.
type span struct {
	What       string
	Start, End int64
	CPU        int64 // ns for which the thread ran
}

// log is what a thread did.
type log struct{ Spans []span }

func now() int64 { return clock(unix.CLOCK_MONOTONIC) }

func clock(which int32) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(which, &t) // it cannot fail for these clocks
	return t.Nano()
}

// do notes what a call was.
func (l *log) do(what string, call func() error) error {
	start, ran := now(), clock(unix.CLOCK_THREAD_CPUTIME_ID)
	err := call()
	l.Spans = append(l.Spans, span{what, start, now(), clock(unix.CLOCK_THREAD_CPUTIME_ID) - ran})
	return err
}

func (l *log) write(path string) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// use works on the CPU.
func (l *log) use(length time.Duration) {
	_ = l.do(work, func() error {
		for until := now() + int64(length); now() < until; {
			for range 1 << 18 { // without asking the clock: where it is a device, that is work of the kernel
				spun.Add(1)
			}
		}
		return nil
	})
}

// spun keeps the compiler from leaving out the work.
var spun atomic.Int64

func makeData(path string) error {
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for range dataSize / len(text) {
		if _, err := file.Write(text); err != nil {
			return err
		}
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	return file.Sync()
}

// disk is the file that is read, without any of it in memory and without read-ahead.
type disk struct {
	*os.File
	pages []int // in the order in which they are read
	at    []byte
}

func openDisk(folder string) (*disk, error) {
	file, err := os.Open(filepath.Join(folder, dataName))
	if err != nil {
		return nil, err
	}
	for _, advice := range []int{unix.FADV_DONTNEED, unix.FADV_RANDOM} {
		if err := unix.Fadvise(int(file.Fd()), 0, 0, advice); err != nil {
			return nil, fmt.Errorf("fadvise: %w", err)
		}
	}
	return &disk{File: file, pages: rand.Perm(dataSize / page)}, nil
}

func (d *disk) next() int64 {
	at := d.pages[0]
	d.pages = d.pages[1:]
	return int64(at) * page
}

// read reads some pages.
func (d *disk) read(pages int) error {
	var into [page]byte
	for range pages {
		if _, err := d.ReadAt(into[:], d.next()); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) mapped() (err error) {
	if d.at, err = unix.Mmap(int(d.Fd()), 0, dataSize, unix.PROT_READ, unix.MAP_SHARED); err == nil {
		err = unix.Madvise(d.at, unix.MADV_RANDOM)
	}
	return err
}

// touch reads pages by faults.
func (d *disk) touch(pages int) error {
	for range pages {
		spun.Add(int64(d.at[d.next()]))
	}
	return nil
}

// job is one of the jobs: NAME LOG FOLDER LENGTH.
func job(args []string) error {
	runtime.LockOSThread()
	name, to, folder := args[0], args[1], args[2]
	length, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	var l log
	var turn func() error
	end := func() error { return nil }
	switch name {
	case "read", "mapped":
		d, err := openDisk(folder)
		if err != nil {
			return err
		}
		fetch := d.read
		if name == "mapped" {
			if err := d.mapped(); err != nil {
				return err
			}
			fetch = d.touch
		}
		turn = func() error {
			l.use(100 * time.Millisecond)
			return l.do(storage, func() error { return fetch(5) })
		}
	case "write":
		file, err := os.CreateTemp(folder, "stallspan-short-*")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		turn = func() error {
			l.use(100 * time.Millisecond)
			return l.do(storage, func() error {
				if _, err := file.Write(make([]byte, page)); err != nil {
					return err
				}
				return file.Sync()
			})
		}
	case "sleep":
		turn = func() error {
			l.use(100 * time.Millisecond)
			return l.do(sleep, func() error { return pause(150 * time.Millisecond) })
		}
	case "child":
		turn, end, err = l.fromChild(folder, to+".child")
	case "thread":
		turn, end, err = l.fromThread(folder, to+".child")
	default:
		return fmt.Errorf("no job is %q", name)
	}
	if err != nil {
		return err
	}
	for until := now() + int64(length); now() < until; {
		if err := turn(); err != nil {
			return err
		}
	}
	if err := l.write(to); err != nil {
		return err
	}
	return end()
}

// pause sleeps in this thread: the runtime would use another one.
func pause(length time.Duration) error {
	left := unix.NsecToTimespec(int64(length))
	for {
		err := unix.Nanosleep(&left, &left)
		if err != unix.EINTR {
			return err
		}
	}
}

// produce is what the other process or thread does for one turn: it reads, and then works on what it read.
func (l *log) produce(d *disk) error {
	if err := l.do(storage, func() error { return d.read(5) }); err != nil {
		return err
	}
	l.use(80 * time.Millisecond)
	return nil
}

// fromChild waits for bytes of a process that reads the disk.
func (l *log) fromChild(folder, to string) (turn, end func() error, err error) {
	own, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	from, by, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	back, asks, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(own, "child", to, folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = back, by, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	_, _ = back.Close(), by.Close()
	in, out := blocking(from), blocking(asks)
	turn = func() error {
		if _, err := unix.Write(out, []byte{1}); err != nil {
			return err
		}
		l.use(20 * time.Millisecond)
		return l.do(wait, func() error { return take(in) })
	}
	return turn, func() error {
		if err := unix.Close(out); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}

// blocking returns a descriptor in which a thread waits itself, without the runtime's poll.
func blocking(f *os.File) int {
	fd, _ := unix.Dup(int(f.Fd()))
	_ = unix.SetNonblock(fd, false)
	_ = f.Close()
	return fd
}

// take reads a byte.
func take(fd int) error {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			return nil
		}
	}
}

// child is the process that reads the disk: LOG FOLDER.
func child(args []string) error {
	runtime.LockOSThread()
	d, err := openDisk(args[1])
	if err != nil {
		return err
	}
	var l log
	for take(0) == nil {
		if err := l.produce(d); err != nil {
			return err
		}
		if _, err := unix.Write(1, []byte{1}); err != nil {
			break // the parent is done
		}
	}
	return l.write(args[0])
}

// fromThread waits for a thread that reads the disk, in a lock.
func (l *log) fromThread(folder, to string) (turn, end func() error, err error) {
	d, err := openDisk(folder)
	if err != nil {
		return nil, nil, err
	}
	ask, answer, done := make(chan bool), make(chan error), make(chan error)
	go func() {
		runtime.LockOSThread()
		var l log
		for range ask {
			answer <- l.produce(d)
		}
		done <- l.write(to)
	}()
	turn = func() error {
		ask <- true
		l.use(20 * time.Millisecond)
		return l.do(wait, func() error { return <-answer })
	}
	return turn, func() error {
		close(ask)
		return <-done
	}, nil
}

// truth is what a job logged, in percent of its window.
type truth struct {
	shares
	either float64 // of storage: the kernel's own work in such calls counts as CPU, too
}

// off is how far a ledger is from it, in points.
func (t *truth) off(found shares) float64 {
	low, high := t.storage-t.either, t.storage
	least := 100.0
	for _, storage := range []float64{low, min(max(found.storage, low), high), high} {
		cpu := 100 - t.other - storage
		least = min(least, max(math.Abs(found.storage-storage), math.Abs(found.other-t.other), math.Abs(found.cpu-cpu)))
	}
	return least
}

// readTruth divides a window's length, in seconds, by what the job logged.
func readTruth(path string, window float64) (*truth, error) {
	var own, others log
	if err := readJSON(path, &own); err != nil {
		return nil, err
	}
	if err := readJSON(path+".child", &others); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if len(own.Spans) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	t := &truth{}
	percent := func(ns int64) float64 { return float64(ns) / 1e7 / window }
	for _, a := range own.Spans {
		switch a.What {
		case storage:
			t.storage += percent(a.End - a.Start)
			t.either += percent(a.CPU)
		case sleep:
			t.other += percent(a.End - a.Start)
		case wait:
			for _, b := range others.Spans {
				if b.What == storage && b.End > a.Start && b.Start < a.End {
					t.storage += percent(min(a.End, b.End) - max(a.Start, b.Start))
					t.either += percent(b.CPU)
				}
			}
		}
	}
	t.cpu = 100 - t.storage - t.other // also the program's start and end
	return t, nil
}
