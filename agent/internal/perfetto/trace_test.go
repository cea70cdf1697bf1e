package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/fixture/tape"
	"github.com/stallspan/stallspan/test/pftrace"
)

// entries reads a recording of testdata.
func entries(t testing.TB, name string) (h recording.Header, all []recording.Entry) {
	t.Helper()
	file, err := os.Open(fixture.File(t, "recordings", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var e recording.Entry
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return r.Header(), all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

// traced decodes the trace of entries.
func traced(t testing.TB, h recording.Header, all []recording.Entry, windows ...*window.Report) *pftrace.Trace {
	t.Helper()
	var file bytes.Buffer
	trace := New(&file, h)
	for i := range all {
		if err := trace.Write(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := trace.Close(nil, windows); err != nil {
		t.Fatal(err)
	}
	return pftrace.Decode(t, file.Bytes())
}

func values(t testing.TB, tr *pftrace.Trace, group, name string) []pftrace.Value {
	t.Helper()
	track := tr.Of(group, name)
	if track == nil || len(track.Values) == 0 {
		t.Fatalf("got no counter %s of %s", name, group)
	}
	return track.Values
}

// at is the value that a counter shows at a time.
func at(all []pftrace.Value, when uint64) float64 {
	i, found := slices.BinarySearchFunc(all, when, func(v pftrace.Value, when uint64) int {
		return int(int64(v.At) - int64(when))
	})
	if !found {
		i--
	}
	if i < 0 {
		return math.NaN()
	}
	return all[i].Value
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestKnownValues compares counters with what two readings of a recording of a GPU say.
func TestKnownValues(t *testing.T) {
	h, all := entries(t, "gpu.jsonl.gz")
	tr := traced(t, h, all)
	var disks, gpus, host []*sample.Sample
	for i := range all {
		switch s := all[i].Sample; {
		case s == nil || all[i].Edge != 0:
		case len(s.Disks) > 0:
			disks = append(disks, s)
		case len(s.GPUs) > 0:
			gpus = append(gpus, s)
		case len(s.Pressures) > 0:
			host = append(host, s)
		}
	}
	zero := uint64(host[0].At.Wall.UnixNano()) - uint64(host[0].At.Mono) // this recording is older than Header.Origin
	if tr.Clock != 1 || tr.Primary != 1 {
		t.Errorf("got the clock %d of %d, want CLOCK_REALTIME: 1", tr.Clock, tr.Primary)
	}
	vda := func(s *sample.Sample) *sample.Disk {
		return &s.Disks[slices.IndexFunc(s.Disks, func(d sample.Disk) bool { return d.Name == "vda" })]
	}
	for i := 1; i < len(disks); i++ {
		before, now := disks[i-1], disks[i]
		when, seconds := zero+uint64(before.At.Mono), (now.At.Mono - before.At.Mono).Seconds()
		near(t, fmt.Sprintf("bytes read, reading %d", i), at(values(t, tr, "Disk vda", "read"), when),
			float64(vda(now).ReadBytes-vda(before).ReadBytes)/seconds)
		queue := (vda(now).TimeInQueue - vda(before).TimeInQueue).Seconds() / seconds
		if a, b := vda(before), vda(now); a.ReadIOs+a.WriteIOs+a.DiscardIOs == b.ReadIOs+b.WriteIOs+b.DiscardIOs {
			queue = float64(min(a.InFlight, b.InFlight)) // none completed, so none added its time
		}
		near(t, fmt.Sprintf("queue, reading %d", i), at(values(t, tr, "Disk vda", "operations in flight"), when), queue)
		if n := vda(now).ReadIOs - vda(before).ReadIOs; n > 0 {
			near(t, fmt.Sprintf("await, reading %d", i), at(values(t, tr, "Disk vda", "await of reads"), when),
				(vda(now).ReadTicks-vda(before).ReadTicks).Seconds()*1e3/float64(n))
		}
	}
	group := "GPU 0 " + gpus[0].GPUs[0].Name
	for i := 1; i < len(gpus); i++ {
		before, now := gpus[i-1], gpus[i]
		near(t, fmt.Sprintf("GPU busy, reading %d", i), at(values(t, tr, group, "busy"), zero+uint64(before.At.Mono)),
			100*(now.GPUs[0].Busy-before.GPUs[0].Busy).Seconds()/(now.At.Mono-before.At.Mono).Seconds())
		near(t, fmt.Sprintf("memory, reading %d", i), at(values(t, tr, group, "memory used"), zero+uint64(now.At.Mono)),
			float64(now.GPUs[0].MemoryUsed))
	}
	near(t, "SMs active", at(values(t, tr, group, "SMs active"), zero+uint64(gpus[len(gpus)-1].At.Mono)), 60)
	for i := 1; i < len(host); i++ {
		before, now := host[i-1], host[i]
		near(t, fmt.Sprintf("pressure, reading %d", i), at(values(t, tr, "Pressure", "io some"), zero+uint64(before.At.Mono)),
			100*(now.Pressures[0].Some-before.Pressures[0].Some).Seconds()/(now.At.Mono-before.At.Mono).Seconds())
	}
}

// TestThreads compares slices of a recorded program with the scheduler's events.
func TestThreads(t *testing.T) {
	h, all := entries(t, "threads.jsonl.gz")
	tr := traced(t, h, all)
	if tr.Clock != 3 || tr.Primary != 3 {
		t.Errorf("got the clock %d of %d, want CLOCK_MONOTONIC: 3", tr.Clock, tr.Primary)
	}
	events := map[int][]sample.ThreadEvent{} // by thread
	for i := range all {
		if s := all[i].Sample; s != nil && s.Schedule != nil {
			for _, e := range s.Schedule.Events {
				events[e.TID] = append(events[e.TID], e)
			}
		}
	}
	waits, runs := 0, 0
	for tid, list := range events {
		for i := range list[:len(list)-1] {
			e, next := &list[i], &list[i+1]
			middle := uint64(h.Origin + e.At + (next.At-e.At)/2)
			switch {
			case next.At == e.At:
			case e.Kind == sample.ThreadOut && next.Kind == sample.ThreadIn && e.IOWait && next.Woken > e.At+(next.At-e.At)/2:
				waits++
				if state := stateAt(tr, int64(tid), middle); state != "waiting for storage" {
					t.Errorf("thread %d after %v: got the state %q, want it to wait for storage", tid, e.At, state)
				}
			case e.Kind == sample.ThreadIn && next.Kind == sample.ThreadOut && next.Stolen == 0:
				runs++
				if state := stateAt(tr, int64(tid), middle); state != "running" {
					t.Errorf("thread %d after %v: got the state %q, want running", tid, e.At, state)
				}
			}
		}
	}
	if waits < 10 || runs < 10 {
		t.Fatalf("got %d waits for a disk and %d stretches on a CPU in the recording, want more", waits, runs)
	}
	var sum float64
	for _, name := range []string{"threads running", "threads ready", "threads waiting for storage", "threads asleep"} {
		sum += values(t, tr, "Job train", name)[0].Value
	}
	if sum <= 0 {
		t.Errorf("got %v threads in all states, want some", sum)
	}
}

func stateAt(tr *pftrace.Trace, tid int64, when uint64) string {
	for _, track := range tr.Tracks {
		for _, s := range track.Slices {
			if track.TID == tid && s.Start <= when && when < s.End {
				return s.Name
			}
		}
	}
	return "none"
}

// TestSameTwice: a trace depends on the entries alone.
func TestSameTwice(t *testing.T) {
	h, _ := entries(t, "threads.jsonl.gz")
	var live, again bytes.Buffer
	one, two := New(&live, h), New(&again, h)
	m := tape.Play(t, fixture.File(t, "recordings", "threads.jsonl.gz"), func(_ *monitor.Monitor, e *recording.Entry) {
		_, _ = one.Write(e), two.Write(e)
	})
	m.Stop()
	for _, trace := range []*Trace{one, two} {
		if _, err := trace.Close(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(live.Bytes(), again.Bytes()) {
		t.Error("got two different traces of one recording, want the same")
	}
}

// TestClockSteps: each step of the wall clock is in a snapshot, and moves nothing else.
func TestClockSteps(t *testing.T) {
	const origin = 1000 * time.Second
	wall := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	var all []recording.Entry
	for i := range 10 {
		mono := time.Duration(i) * time.Second
		s := &sample.Sample{
			At: sample.Stamp{Mono: mono, Wall: wall.Add(mono)}, Cores: []sample.Core{{Name: "cpu0", User: mono / 2}},
		}
		if i >= 5 {
			s.At.Wall = s.At.Wall.Add(-time.Hour)
		}
		all = append(all, recording.Entry{Source: "cpu", Sample: s})
	}
	tr := traced(t, recording.Header{Origin: origin}, all)
	want := []map[uint32]uint64{
		{3: uint64(origin), 1: uint64(wall.UnixNano())},
		{3: uint64(origin + 5*time.Second), 1: uint64(wall.Add(5*time.Second - time.Hour).UnixNano())},
	}
	if len(tr.Snapshots) != 2 || tr.Snapshots[0][3] != want[0][3] || tr.Snapshots[0][1] != want[0][1] ||
		tr.Snapshots[1][3] != want[1][3] || tr.Snapshots[1][1] != want[1][1] {
		t.Errorf("got the snapshots %v, want %v", tr.Snapshots, want)
	}
	if got := values(t, tr, "CPU", "cores at work"); len(got) != 1 || got[0].At != uint64(origin) || got[0].Value != 0.5 {
		t.Errorf("got %v, want half a core from %d on", got, uint64(origin))
	}
}

// report is a window from one moment to another.
func report(name string, from, to time.Duration) *window.Report {
	r := &window.Report{Window: window.Window{Kind: window.Custom, Name: name}, Judgement: window.Judgement{Verdict: window.Unknown}}
	r.Start.Mono, r.End.Mono = from, to
	r.Start.Wall = time.Unix(0, int64(from))
	r.End.Wall = time.Unix(0, int64(to))
	return r
}

// FuzzWindows draws windows that contain, cross and touch each other. Decode refuses ends without a begin.
func FuzzWindows(f *testing.F) {
	f.Add(uint64(1), uint8(30), uint8(20))
	f.Add(uint64(7), uint8(200), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n, length uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		var all []*window.Report
		want := map[string][2]uint64{}
		for i := range int(n) {
			from := time.Duration(random.IntN(100))
			to := from + time.Duration(random.IntN(int(length)+1))
			r := report(fmt.Sprintf("window %d", i), from, to)
			r.Stalls = []window.Stall{{Start: from, End: to}}
			all = append(all, r)
			want[r.Name] = [2]uint64{uint64(from), uint64(to)}
		}
		tr := traced(t, recording.Header{Origin: 1}, []recording.Entry{{Sample: &sample.Sample{}}}, all...)
		drawn := map[string]bool{}
		for _, s := range tr.All("Windows") {
			name, _, _ := strings.Cut(s.Name, ":")
			if got := [2]uint64{s.Start - 1, s.End - 1}; got != want[name] || drawn[name] {
				t.Errorf("%s: got %v, drawn before: %v, want %v once", name, got, drawn[name], want[name])
			}
			drawn[name] = true
		}
		if left := tr.Of("", "Left out of this trace"); left == nil && len(drawn) != len(want) {
			t.Errorf("got %d windows, want %d", len(drawn), len(want))
		}
		for _, name := range []string{"Windows", "Storage stalls"} {
			nested(t, tr, name)
		}
	})
}

// nested fails if two slices of one track cross each other.
func nested(t *testing.T, tr *pftrace.Trace, name string) {
	t.Helper()
	for _, track := range tr.Tracks {
		for i, a := range track.Slices {
			for _, b := range track.Slices[:i] { // ends no later than a
				if track.Name == name && b.Start < a.Start && b.End > a.Start {
					t.Fatalf("got %+v, which crosses %+v", a, b)
				}
			}
		}
	}
}

// TestNestedWindows: an epoch that begins with its run is drawn within it.
func TestNestedWindows(t *testing.T) {
	tr := traced(t, recording.Header{Origin: 1}, []recording.Entry{{Sample: &sample.Sample{}}},
		report("epoch", 0, 5), report("run", 0, 10), report("checkpoint", 5, 5), report("next", 5, 10))
	depths := map[string]int{}
	for _, s := range tr.All("Windows") {
		name, _, _ := strings.Cut(s.Name, ":")
		depths[name] = s.Depth
	}
	lanes := 0
	for _, track := range tr.Tracks {
		if track.Name == "Windows" {
			lanes++
		}
	}
	want := map[string]int{"run": 0, "epoch": 1, "checkpoint": 2, "next": 1}
	if lanes != 1 || !maps.Equal(depths, want) {
		t.Errorf("got the depths %v on %d tracks, want %v on one", depths, lanes, want)
	}
}

// TestSums: the order of states that the kernel summed up is not known, so they are one slice.
func TestSums(t *testing.T) {
	const ms = time.Millisecond
	s := &sample.Schedule{Until: 100 * ms, Events: []sample.ThreadEvent{
		{Kind: sample.ThreadBegan, TID: 7, PID: 7, Job: "job"},
		{At: ms, Kind: sample.ThreadIn, TID: 7, PID: 7},
		{At: 9 * ms, Kind: sample.ThreadSum, TID: 7, PID: 7, From: ms, Running: 5 * ms, Ready: ms, Blocked: 2 * ms},
		{At: 9 * ms, Kind: sample.ThreadIn, TID: 7, PID: 7},
		{At: 9 * ms, Kind: sample.ThreadOut, TID: 7, PID: 7, State: sample.StateBlocked, IOWait: true},
		{At: 50 * ms, Kind: sample.ThreadIn, TID: 7, PID: 7},
	}}
	all := []recording.Entry{{Source: "schedule", Sample: &sample.Sample{Schedule: s}}}
	tr := traced(t, recording.Header{Origin: 1}, all)
	for _, track := range tr.Tracks {
		if track.TID != 7 {
			continue
		}
		var names []string
		for _, s := range track.Slices {
			names = append(names, s.Name)
		}
		if want := []string{"mostly running", "waiting for storage", "running"}; !slices.Equal(names, want) {
			t.Fatalf("got the states %q, want %q", names, want)
		}
		want := map[string]any{"running ms": 5.0, "ready ms": 1.0, "waiting for storage ms": 2.0}
		if got := track.Slices[0].Notes; !maps.Equal(got, want) {
			t.Errorf("got the parts %v, want %v", got, want)
		}
	}
}

// FuzzThreads: whatever the scheduler says, the states of one thread follow each other, and no time is drawn twice.
func FuzzThreads(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13"), uint16(4))
	f.Add(bytes.Repeat([]byte("\x21\x42\x63\x84"), 300), uint16(1000))
	f.Fuzz(func(t *testing.T, script []byte, room uint16) {
		var all []recording.Entry
		now := time.Duration(0)
		s := &sample.Schedule{}
		for i, b := range script {
			now += time.Duration(b) * 10 * time.Microsecond
			s.Events = append(s.Events, sample.ThreadEvent{
				At: now, Kind: sample.ThreadEventKind(b % 7), TID: int(b%4) + 1, PID: 1, Job: "job", Name: "x",
				State: sample.ThreadState(b / 8 % 5), IOWait: b&64 != 0, Syscall: int(b % 100), Waker: int(b%3) + 1,
				WakerKind: sample.WakerKind(b % 5), Woken: now - time.Duration(b)*time.Microsecond,
				From: now - time.Duration(b)*5*time.Microsecond, Running: time.Duration(b) * time.Microsecond,
				Asleep: time.Duration(b) * time.Microsecond,
			})
			if i%16 == 15 || i == len(script)-1 {
				s.Until = now
				all = append(all, recording.Entry{Source: "schedule", Sample: &sample.Sample{
					At: sample.Stamp{Mono: now, Wall: time.Unix(0, int64(now))}, Schedule: s,
				}})
				s = &sample.Schedule{Lost: uint64(b / 250)}
			}
		}
		if len(all) == 0 {
			return
		}
		var file bytes.Buffer
		trace := New(&file, recording.Header{Origin: time.Hour})
		trace.threads.budget = newBudget(int(room), firstShort)
		for i := range all {
			_ = trace.Write(&all[i])
		}
		if _, err := trace.Close(nil, nil); err != nil {
			t.Fatal(err)
		}
		states := 0
		for _, track := range pftrace.Decode(t, file.Bytes()).Tracks {
			for i, slice := range track.Slices {
				if states++; slice.Depth > 0 || i > 0 && slice.Start < track.Slices[i-1].End {
					t.Errorf("thread %d: got %+v inside of another state", track.TID, slice)
				}
			}
		}
		if states > int(room) {
			t.Errorf("got %d states, want %d at most", states, room)
		}
	})
}

// TestShortStatesAreDrawnTogether: with less room the picture is coarser, but no time is lost.
func TestShortStatesAreDrawnTogether(t *testing.T) {
	h, all := entries(t, "threads.jsonl.gz")
	draw := func(room int) (states int, sum float64, left []string) {
		var file bytes.Buffer
		trace := New(&file, h)
		trace.threads.budget = newBudget(room, firstShort)
		for i := range all {
			_ = trace.Write(&all[i])
		}
		left, err := trace.Close(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := pftrace.Decode(t, file.Bytes())
		for _, track := range tr.Tracks {
			for _, s := range track.Slices {
				states++
				sum += time.Duration(s.End - s.Start).Seconds()
				var parts float64
				for _, part := range s.Notes {
					parts += part.(float64) / 1e3
				}
				if length := time.Duration(s.End - s.Start).Seconds(); len(s.Notes) > 0 && math.Abs(parts-length) > 1e-9 {
					t.Errorf("got parts of %v s in a state of %v s", parts, length)
				}
			}
		}
		if len(left) > 0 && tr.Of("", "Left out of this trace").Marks[0] != left[0] {
			t.Errorf("got %q at the end and %q in the file", left, tr.Of("", "Left out of this trace").Marks)
		}
		return states, sum, left
	}
	fine, all1, none := draw(maxStates)
	coarse, all2, left := draw(fine / 2)
	if len(none) != 0 {
		t.Errorf("got %q, want nothing left out", none)
	}
	if coarse > fine/2 || math.Abs(all1-all2) > 1e-6 {
		t.Errorf("got %d states of %v s in all, and %d of %v s with half the room, want the same time", fine, all1, coarse,
			all2)
	}
	if len(left) != 1 || !strings.Contains(left[0], "drawn together") {
		t.Errorf("got %q, want a sentence about short states", left)
	}
}

// TestManyThreads: there is a bound of tracks, and a sentence about the others.
func TestManyThreads(t *testing.T) {
	s := &sample.Schedule{Until: time.Second}
	const threads = maxThreads + 3
	for i := range threads {
		s.Events = append(s.Events,
			sample.ThreadEvent{Kind: sample.ThreadBegan, TID: i + 1, PID: 1, Job: "job", Creator: 1})
	}
	for i := range threads {
		s.Events = append(s.Events, sample.ThreadEvent{Kind: sample.ThreadIn, At: time.Second, TID: i + 1, PID: 1})
	}
	var file bytes.Buffer
	trace := New(&file, recording.Header{Origin: 1})
	_ = trace.Write(&recording.Entry{Source: "schedule", Sample: &sample.Sample{Schedule: s}})
	left, err := trace.Close(nil, nil)
	if err != nil || len(left) != 1 || left[0] != "3 threads have no track" {
		t.Errorf("got %q and %v, want 3 threads without a track", left, err)
	}
	drawn := 0
	for _, track := range pftrace.Decode(t, file.Bytes()).Tracks {
		if track.TID != 0 {
			drawn++
		}
	}
	if drawn != maxThreads {
		t.Errorf("got %d tracks of threads, want %d", drawn, maxThreads)
	}
}

// TestCountersHaveABound: a long trace has fewer values a second at its end, and says so.
func TestCountersHaveABound(t *testing.T) {
	var file bytes.Buffer
	trace := New(&file, recording.Header{Origin: 1})
	const room = 200
	trace.counters.budget = newBudget(room, firstStep)
	busy := time.Duration(0)
	for i := range 5000 {
		mono := time.Duration(i) * 100 * time.Millisecond
		busy += time.Duration(i%7) * 10 * time.Millisecond
		_ = trace.Write(&recording.Entry{Source: "cpu", Sample: &sample.Sample{
			At: sample.Stamp{Mono: mono, Wall: time.Unix(0, int64(mono))}, Cores: []sample.Core{{Name: "cpu0", User: busy}},
		}})
	}
	left, err := trace.Close(nil, nil)
	if err != nil || len(left) == 0 || !strings.Contains(left[0], "fewer values") {
		t.Errorf("got %q and %v, want a sentence about fewer values", left, err)
	}
	got := values(t, pftrace.Decode(t, file.Bytes()), "CPU", "cores at work")
	if last := time.Duration(got[len(got)-1].At); len(got) > room || last < 300*time.Second {
		t.Errorf("got %d values until %v, want at most %d until about the end at 500 s", len(got), last, room)
	}
}

// TestNamesOfPrograms: any bytes may be a name.
func TestNamesOfPrograms(t *testing.T) {
	r := report("\xff\x1b[31mred\n"+strings.Repeat("x", 4000), 1, 2)
	tr := traced(t, recording.Header{Origin: 1}, []recording.Entry{{Sample: &sample.Sample{}}}, r)
	name := tr.All("Windows")[0].Name
	if strings.ContainsAny(name, "\x1b\n") || len(name) > maxText+8 || !strings.Contains(name, "[31mred") {
		t.Errorf("got the name %.60q of %d bytes, want printable text", name, len(name))
	}
}

// TestDiskThatIsFull: the error is that of the file.
func TestDiskThatIsFull(t *testing.T) {
	trace := New(full{}, recording.Header{})
	_, all := entries(t, "gpu.jsonl.gz")
	for i := range all {
		if err := trace.Write(&all[i]); err != nil {
			t.Fatalf("got the error %v, want it from Close", err)
		}
	}
	if _, err := trace.Close(nil, nil); !errors.Is(err, errFull) {
		t.Errorf("got the error %v, want %v", err, errFull)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
