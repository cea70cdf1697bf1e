//go:build amd64 || arm64

package helper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/trust"
)

// traceSeen is what an agent sees of the tracer.
type traceSeen struct {
	Refused string            // why the tracer refuses; the rest is empty then
	Threads map[string]rights // of the agent, by ID
	Tracer  rights
	Before  int    // events of the job before the tracer is killed
	Away    string // the error of a reading afterwards
	Lost    uint64 // events that the first reading with the next tracer reports as lost
	After   int    // events of the job with the next tracer
	Timed   bool   // operations of disks are timed
	Untimed string // the error of a reading without a tracer
	Again   bool   // they are timed with the next tracer
}

// actAsTracingAgent separates its privileges, follows a process that sleeps and works, kills the tracer, and goes on.
func actAsTracingAgent() error {
	if err := Separate(trust.None); err != nil {
		return err
	}
	left, err := left()
	if err != nil {
		return err
	}
	helpers, err := Inherit()
	if err != nil || helpers.Tracer == nil || helpers.Reader == nil {
		return fmt.Errorf("got the helpers %+v, want both: %w", helpers, err)
	}
	defer helpers.Close()
	var got traceSeen
	source := bpf.NewFrom(helpers.Tracer.Open, bpf.Wanted{Threads: true, Disks: true}, "")
	if refused := source.Lacks(); refused.Of(bpf.Threads) != nil || refused.Of(bpf.Disks) != nil {
		got.Refused = strings.Join(refused.Causes(), ", ")
		return json.NewEncoder(os.Stdout).Encode(got)
	}
	defer func() { _ = source.Close() }()
	cmd := exec.Command("sh", "-c", "while sleep 0.01; do :; done")
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if err := source.Follow("job", []int{cmd.Process.Pid}); err != nil {
		return err
	}
	if got.Before, _, err = readSome(source); err != nil {
		return err
	}
	if got.Timed, err = timesDisks(source); err != nil {
		return err
	}
	got.Threads = map[string]rights{}
	tasks, err := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		r, failed := rightsOf(task)
		got.Threads[filepath.Base(task)], err = r, errors.Join(err, failed)
	}
	tracer, failed1 := childOf(left.Keeper, "trace")
	r, failed2 := rightsOf("/proc/" + strconv.Itoa(tracer))
	got.Tracer = r
	if err = errors.Join(err, failed1, failed2); err != nil {
		return err
	}
	if err := syscall.Kill(tracer, syscall.SIGKILL); err != nil {
		return err
	}
	for end := time.Now().Add(slowest); got.Away == "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		var s sample.Sample
		if err := source.Read(&s); err != nil {
			got.Away = err.Error()
		}
	}
	var s sample.Sample
	s.Edge = true
	if err := source.Latencies().Read(&s); err != nil {
		got.Untimed = err.Error()
	}
	for end := time.Now().Add(slowest); got.After == 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got.After, got.Lost, err = readSome(source); err != nil {
			got.After = 0
		}
	}
	for end := time.Now().Add(slowest); !got.Again && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		got.Again, _ = timesDisks(source)
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

// timesDisks writes something to a disk, and reports whether that is timed.
func timesDisks(source *bpf.Source) (timed bool, err error) {
	file, err := os.CreateTemp("/var/tmp", "stallspan-")
	if err != nil {
		return false, err
	}
	defer func() { _, _ = file.Close(), os.Remove(file.Name()) }()
	_, err = file.Write(make([]byte, 1<<16))
	if err = errors.Join(err, file.Sync()); err != nil {
		return false, err
	}
	s := sample.Sample{Edge: true}
	if err := source.Latencies().Read(&s); err != nil {
		return false, err
	}
	for i := range s.Latencies {
		timed = timed || s.Latencies[i].Operation == sample.WriteOperation && s.Latencies[i].Count() > 0
	}
	return timed, nil
}

// readSome reads until there are events, and returns their number and how many were lost.
func readSome(source *bpf.Source) (events int, lost uint64, err error) {
	for end := time.Now().Add(slowest); events < 20 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var s sample.Sample
		if err := source.Read(&s); err != nil {
			return 0, 0, err
		}
		events += len(s.Schedule.Events)
		lost += s.Schedule.Lost
	}
	return events, lost, nil
}

// An agent without any capability follows threads, also after the tracer was killed. It learns that events are missing.
func TestAgentFollowsTheSchedulerWithoutCapabilities(t *testing.T) {
	if refused := bpf.Supported(""); refused.Of(bpf.Threads) != nil || refused.Of(bpf.Disks) != nil {
		t.Skip("needs BPF: ", refused.Causes())
	}
	var got traceSeen
	separated(t, "tracing agent", nil, &got, unix.CAP_BPF, unix.CAP_PERFMON)
	if got.Refused != "" {
		t.Fatalf("got %q, want a tracer", got.Refused)
	}
	for id, r := range got.Threads {
		if strings.Trim(r.Permitted+r.Effective, "0") != "" {
			t.Errorf("thread %s of the agent: got %+v, want no capabilities", id, r)
		}
	}
	const scheduler = "000000c000000000" // CAP_PERFMON and CAP_BPF
	if want := (rights{scheduler, scheduler, "1", "2"}); got.Tracer != want || len(got.Threads) == 0 {
		t.Errorf("the tracer: got %+v, want %+v", got.Tracer, want)
	}
	if got.Before == 0 || got.After == 0 {
		t.Errorf("got %d events, and %d with the next tracer; want some", got.Before, got.After)
	}
	if !strings.Contains(got.Away, "is started again") {
		t.Errorf("got the error %q without a tracer, want one that says so", got.Away)
	}
	if !got.Timed || !got.Again || !strings.Contains(got.Untimed, "is started again") {
		t.Errorf("operations of disks: timed %v, without a tracer %q, with the next %v; want true, an error, and true",
			got.Timed, got.Untimed, got.Again)
	}
	if got.Lost == 0 {
		t.Error("got no lost events of the time without a tracer, want at least one")
	}
}

// actConfinedTracer confines itself as the tracer does, and prints what forbidden calls return.
func actConfinedTracer() error {
	if err := confine(tracing); err != nil {
		return err
	}
	got := map[string]syscall.Errno{}
	var zeros [256]byte
	none := uintptr(unsafe.Pointer(&zeros))
	for what, command := range map[string]uintptr{
		"pin": 6, "get pinned": 7, "attach": 8, "detach": 9, "test run": 10, "next program": 11, "next map": 12,
		"program by ID": 13, "map by ID": 14, "query": 16, "task of a descriptor": 20, "link by ID": 30, "statistics": 32,
		"token": 36,
	} {
		_, _, got["bpf: "+what] = unix.Syscall(unix.SYS_BPF, command, none, uintptr(len(zeros)))
	}
	_, _, got["perf events"] = unix.Syscall6(unix.SYS_PERF_EVENT_OPEN, none, 0, 0, ^uintptr(0), 0, 0)
	_, _, got["execve"] = unix.Syscall(unix.SYS_EXECVE, none, none, none)
	_, _, got["socket"] = unix.Syscall(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
	_, _, got["ptrace"] = unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid()), 0)
	_, _, got["create"] = unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), none, unix.O_CREAT, 0o600, 0, 0)
	return json.NewEncoder(os.Stdout).Encode(got)
}

func TestFilterOfTheTracer(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), actAs+"=confined tracer", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	var got map[string]syscall.Errno
	if err != nil || json.Unmarshal(out, &got) != nil {
		t.Fatalf("got %v, %s", err, out)
	}
	if len(got) != 19 {
		t.Errorf("got %d calls, want 19", len(got))
	}
	for what, number := range got {
		if number != unix.EPERM {
			t.Errorf("%s: got %v, want %v", what, number, unix.EPERM)
		}
	}
}

// traceQuestions are all questions to the tracer.
var traceQuestions = []question{
	{op: opTrace, number: 1, want: bpf.Wanted{Threads: true}},
	{op: opTrace, number: 2, want: bpf.Wanted{Threads: true, Disks: true}},
	{op: opJob, number: 3, handle: 1, slot: 1, generation: 7},
	{op: opJob, number: 4, handle: 1, slot: bpf.MaxJobs},
	{op: opAdopt, number: 5, handle: 2, slot: 3, generation: 1, pids: []int{1, maxPID}},
	{op: opFlush, number: 6, handle: 9},
	{op: opReport, number: 7, handle: 9},
	{op: opUntrace, number: 7, handle: 9},
}

func TestTraceQuestions(t *testing.T) {
	for _, want := range traceQuestions {
		frame := want.append(nil)
		var got question
		if err := got.parse(frame); err != nil || !bytes.Equal(got.append(nil), frame) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		for n := range frame {
			whole := want.op == opAdopt && n == len(frame)-4 // with a process less
			if err := new(question).parse(frame[:n]); err == nil && !whole {
				t.Errorf("%d: got no error for the first %d bytes, want one", want.op, n)
			}
		}
		if err := new(question).parse(append(frame, 0)); err == nil {
			t.Errorf("%d: got no error with a byte more, want one", want.op)
		}
	}
	for name, frame := range map[string][]byte{
		"slot 0":         (&question{op: opJob, handle: 1}).append(nil),
		"slot too high":  (&question{op: opJob, handle: 1, slot: bpf.MaxJobs + 1}).append(nil),
		"no processes":   (&question{op: opAdopt, handle: 1, slot: 1}).append(nil),
		"process 0":      (&question{op: opAdopt, handle: 1, slot: 1, pids: []int{0}}).append(nil),
		"many processes": (&question{op: opAdopt, handle: 1, slot: 1, pids: ones(maxAdopted + 1)}).append(nil),
	} {
		if err := new(question).parse(frame); !errors.Is(err, errFrame) {
			t.Errorf("%s: got %v, want %v", name, err, errFrame)
		}
	}
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// fakeTracing counts what is wanted of it.
type fakeTracing struct {
	bpf.Tracing
	want   bpf.Wanted
	closed *int
}

func (f fakeTracing) Memory() (m bpf.Memory) {
	if f.want.Threads {
		m.Events, m.Counters, m.EventBytes = 5, 6, 4096
	}
	if f.want.Disks {
		m.Cells, m.Directory, m.Disks = 7, 8, true
	}
	return m
}

func (fakeTracing) Lacks() bpf.Refusals {
	return bpf.Refusals{{What: "one", Why: errors.New("needs more")}, {What: "two", Why: errors.New("is refused")}}
}

func (fakeTracing) SetJob(uint32, uint32) error       { return syscall.E2BIG }
func (fakeTracing) Adopt(uint32, uint32, []int) error { return nil }
func (fakeTracing) Report() error                     { return nil }
func (fakeTracing) Flush() error                      { return errors.New("no number") }
func (f fakeTracing) Close() error                    { *f.closed++; return nil }

// sent is what a tracer has sent.
type sent struct {
	frame       []byte
	descriptors []int
}

// tracingsOf returns what answers by an opener, and a function that gives it a question and waits for the answer.
func tracingsOf(open func(bpf.Wanted) (bpf.Tracing, error)) (s *tracings, ask func(frame []byte) (sent, error)) {
	answers := make(chan sent, 1)
	s = &tracings{open: open, held: map[uint32]bpf.Tracing{}, send: func(frame []byte, descriptors []int) error {
		answers <- sent{bytes.Clone(frame), descriptors}
		return nil
	}}
	return s, func(frame []byte) (sent, error) {
		if err := s.answer(frame); err != nil {
			return sent{}, err
		}
		return <-answers, nil
	}
}

// fakes opens tracings that count how many are closed.
func fakes(closed *int) func(bpf.Wanted) (bpf.Tracing, error) {
	return func(want bpf.Wanted) (bpf.Tracing, error) { return fakeTracing{want: want, closed: closed}, nil }
}

// An answer has what is refused and the maps of what is wanted: their descriptors, and how large they are.
func TestTraceAnswers(t *testing.T) {
	for _, want := range []bpf.Wanted{{}, {Threads: true}, {Disks: true}, {Threads: true, Disks: true}} {
		closed := 0
		_, ask := tracingsOf(fakes(&closed))
		got, err := ask((&question{op: opTrace, want: want}).append(nil))
		if err != nil {
			t.Fatal(err)
		}
		descriptors := got.descriptors
		_, _, body, _ := split(got.frame)
		for n := range body {
			whole := n == 9 || n == 9+17 // without both refusals, or the last one
			if err := new(content).parse(body[:n], opTrace); (err == nil) != whole {
				t.Errorf("got %v for the first %d bytes of %d, want an error: %v", err, n, len(body), !whole)
			}
		}
		var a content
		if err := a.parse(body, opTrace); err != nil || a.disks != want.Disks || (a.eventBytes == 4096) != want.Threads ||
			len(descriptors) != a.maps() || !slices.Equal(a.lacks.Causes(), fakeTracing{}.Lacks().Causes()) {
			t.Errorf("%+v: got %+v, %v, %d descriptors", want, a, err, len(descriptors))
		}
		descriptor := 5
		if !want.Threads {
			descriptor = 7
		}
		if len(descriptors) > 0 && descriptors[0] != descriptor {
			t.Errorf("%+v: got the descriptors %v, want them from %d on", want, descriptors, descriptor)
		}
	}
}

// The tracer holds a bounded number of tracings, and answers about one that it does not hold with EBADF.
func TestTracings(t *testing.T) {
	closed := 0
	s, answer := tracingsOf(fakes(&closed))
	ask := func(q question) (body []byte, descriptors []int) {
		t.Helper()
		got, err := answer(q.append(nil))
		if err != nil {
			t.Fatalf("got the error %v, want an answer", err)
		}
		_, _, body, _ = split(got.frame)
		return body, got.descriptors
	}
	var a content
	for i := range maxTracings + 1 {
		body, descriptors := ask(question{op: opTrace, want: bpf.Wanted{Threads: true}})
		a = content{}
		err := a.parse(body, opTrace)
		if full := i == maxTracings; err != nil || (a.reason != "") != full || (len(descriptors) == 2) == full {
			t.Errorf("tracing %d: got %+v, %v, %v", i, a, descriptors, err)
		}
	}
	for _, test := range []struct {
		q    question
		want syscall.Errno
	}{
		{question{op: opJob, handle: 1, slot: 1}, syscall.E2BIG},
		{question{op: opAdopt, handle: 1, slot: 1, pids: []int{1}}, 0},
		{question{op: opFlush, handle: 1}, syscall.EIO},
		{question{op: opUntrace, handle: 1}, 0},
		{question{op: opFlush, handle: 1}, syscall.EBADF},
	} {
		body, _ := ask(test.q)
		var a content
		if err := a.parse(body, test.q.op); a.failed != test.want || err != nil {
			t.Errorf("%+v: got %v, %v; want %v", test.q, a.failed, err, test.want)
		}
	}
	if closed != 1 {
		t.Errorf("got %d tracings closed, want 1", closed)
	}
	if got, err := answer(questions[0].append(nil)); !errors.Is(err, errFrame) {
		t.Errorf("a question to the reader: got %+v, %v; want %v", got, err, errFrame)
	}
	s.open = func(bpf.Wanted) (bpf.Tracing, error) { return nil, errors.New(strings.Repeat("x", 2*maxReason)) }
	body, _ := ask(question{op: opTrace})
	if err := a.parse(body, opTrace); err != nil || len(a.reason) != maxReason {
		t.Errorf("got a reason of %d bytes, %v; want %d", len(a.reason), err, maxReason)
	}
}

// FuzzTrace gives the tracer any frame. It ends, or sends the fixed form.
func FuzzTrace(f *testing.F) {
	for i := range traceQuestions {
		f.Add(traceQuestions[i].append(nil))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		closed := 0
		s, ask := tracingsOf(fakes(&closed))
		s.held[1] = fakeTracing{closed: &closed}
		got, err := ask(frame)
		if err != nil {
			return
		}
		descriptors := got.descriptors
		o, _, body, err := split(got.frame)
		loads := o == opTrace
		a := content{}
		if err != nil || loads && a.parse(body, opTrace) != nil || !loads && len(body) != 2 {
			t.Errorf("got %x for %x, want the form of its answer", got.frame, frame)
		}
		if loads && a.maps() != len(descriptors) || !loads && len(descriptors) > 0 {
			t.Errorf("got %d descriptors for question %d", len(descriptors), o)
		}
	})
}
