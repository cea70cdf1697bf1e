package process

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// A real job of ten processes: the shell and nine that wait for input.
func tenProcesses(b *testing.B) *Source {
	shell := startShell(b, &syscall.SysProcAttr{})
	wait, _ := fifo(b, "wait")
	for range 9 {
		shell.do(fmt.Sprintf("(read x <%s) &", wait))
	}
	source := New("")
	b.Cleanup(source.Close)
	if err := source.Add("ten", shell.Process.Pid, Options{}); err != nil {
		b.Fatal(err)
	}
	if n := read(b, source).Jobs[0].Processes; n != 10 {
		b.Fatalf("%d processes", n)
	}
	return source
}

func BenchmarkReadTenProcesses(b *testing.B) {
	source := tenProcesses(b)
	var s sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		source.jobs[0].scanned = sample.Now().Mono
		if err := source.Read(&s); err != nil {
			b.Fatal(err)
		}
	}
}

// Once a second: members and open files.
func BenchmarkLookTenProcesses(b *testing.B) {
	source := tenProcesses(b)
	var s sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		source.lookNow()
		if err := source.Read(&s); err != nil {
			b.Fatal(err)
		}
	}
}
