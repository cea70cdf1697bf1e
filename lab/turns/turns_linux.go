// Package turns is a program that computes and switches between two threads at a given rate, to measure what following
// switches costs it.
package turns

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Variable makes the program of Main run: a Job in JSON.
const Variable = "STALLSPAN_TURNS"

// Job is what the program does: Rounds times it computes Steps steps, and passes a byte to another thread on the same
// CPU and back. That is two switches. With Length it goes on for that long, and sleeps if Steps is 0.
type Job struct {
	Rounds int
	Steps  int
	Length time.Duration
}

// Result is what the program prints.
type Result struct {
	Took     time.Duration
	CPU      time.Duration // of all its threads
	Switches int
}

// Main does the job of the environment, and reports whether there is one.
func Main() bool {
	text := os.Getenv(Variable)
	if text == "" {
		return false
	}
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(j.do()); err != nil {
		fail(err)
	}
	return true
}

// Environment is what makes the program do the job.
func (j Job) Environment() string {
	text, _ := json.Marshal(j) // three numbers
	return Variable + "=" + string(text)
}

// Steps returns a Job that switches so many times a second for a length. It tries how fast this machine is.
func Steps(switches int, length time.Duration) Job {
	const many = 20_000_000
	step := Job{Rounds: 1, Steps: many}.do().CPU.Seconds() / many
	turn := Job{Rounds: 20_000, Steps: 1}.do().CPU.Seconds() / 20_000
	compute := max(2/float64(switches)-turn, 0)
	return Job{Rounds: int(length.Seconds() * float64(switches) / 2), Steps: max(int(compute/step), 1)}
}

func (j Job) do() Result {
	if j.Steps == 0 {
		time.Sleep(j.Length)
		return Result{Took: j.Length}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pin()
	forth, back := pipe(), pipe()
	go echo(forth, back)
	before := usage()
	began := time.Now()
	x := uint64(1)
	for n := 0; n < j.Rounds || j.Length > 0 && time.Since(began) < j.Length; n++ {
		for range j.Steps {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		pass(forth[1], []byte{byte(x)})
		take(back[0])
	}
	took := time.Since(began)
	after := usage()
	_ = unix.Close(forth[1])
	return Result{
		Took: took, CPU: time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()),
		Switches: int(after.Nvcsw - before.Nvcsw),
	}
}

func echo(from, to [2]int) {
	runtime.LockOSThread() // and never unlock: the thread ends with the function
	pin()
	for take(from[0]) {
		pass(to[1], []byte{0})
	}
}

func pin() {
	var first unix.CPUSet
	first.Set(0)
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		fail(err)
	}
}

func pipe() (ends [2]int) {
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		fail(err)
	}
	return ends
}

func pass(fd int, b []byte) {
	if _, err := unix.Write(fd, b); err != nil {
		fail(err)
	}
}

// take reads a byte, and reports whether there was one.
func take(fd int) bool {
	var b [1]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		fail(err)
	}
	return n == 1
}

func usage() (u unix.Rusage) {
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return u
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "turns:", err)
	os.Exit(1)
}
