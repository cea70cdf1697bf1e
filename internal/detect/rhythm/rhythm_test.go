package rhythm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

// proc is a process of a job that is made up: CPU is what it works, in cores.
type proc struct {
	pid      int
	from, to time.Duration
	cpu      float64
	drives   bool
}

// reading is a stretch of a job's time: bytes and busy GPU per second.
type reading struct {
	from, to    time.Duration
	bytes, busy float64
}

// open is a file that is read from its begin, or written.
type open struct {
	pid, fd  int
	file     uint64
	from, to time.Duration
	rate     float64 // bytes/s
	write    bool
	size     int64  // 0 for a large one
	end      string // of the name
	modified int64
}

// touch is a stretch of time in which a process touches pages of a map, which ends with it.
type touch struct {
	pid      int
	from, to time.Duration
	rate     float64 // bytes/s
}

// story is a job that is made up. It has a look a second, or one in each every.
type story struct {
	every time.Duration
	maps  []touch
	left  time.Duration // for which the job is listed after its end
	wrote []reading     // bytes that are written
	procs []proc
	reads []reading
	opens []open
	exact bool
	start time.Duration // of the first look
	end   time.Duration
	gaps  map[int]bool                // looks that are left out
	blind func(at time.Duration) bool // of looks without reports of opens, if exact
}

func overlap(from, to, at time.Duration) float64 { return max(0, min(at, to)-from).Seconds() }

// Level implements detect.Past: counters exist from the first look on.
func (s *story) Level(q detect.Quantity, at time.Duration) (sum float64, ok bool) {
	for _, r := range s.reads {
		switch q {
		case detect.ReadChars:
			sum += r.bytes * overlap(r.from, r.to, at)
		case detect.GPUBusy:
			sum += r.busy * overlap(r.from, r.to, at)
		}
	}
	for _, p := range s.procs {
		if q == detect.CPUTime {
			sum += p.cpu * overlap(p.from, p.to, at)
		}
	}
	for _, w := range s.wrote {
		if q == detect.WriteBytes {
			sum += w.bytes * overlap(w.from, w.to, at)
		}
	}
	return sum, at >= s.start && q != detect.ReadBytes
}

func (s *story) Reading(detect.Quantity) (time.Duration, bool) { return s.end, true }

func (s *story) facts(last, at time.Duration) *detect.Facts {
	f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, Exact: s.exact && (s.blind == nil || !s.blind(at))}
	for _, p := range s.procs {
		if p.from <= at && at < p.to {
			cpu := time.Duration(p.cpu * overlap(p.from, p.to, at) * float64(second))
			memory := int64(50e6)
			for _, m := range s.maps {
				if m.pid == p.pid && m.from <= at && at < m.to {
					memory += int64(m.rate * overlap(m.from, m.to, at))
				}
			}
			f.Processes = append(f.Processes,
				detect.Process{PID: p.pid, Started: p.from, CPUTime: cpu, Drives: p.drives, Memory: memory})
		}
	}
	for _, o := range s.opens {
		key, path := detect.FileKey{Device: 1, Inode: o.file}, fmt.Sprintf("/data/%d%s", o.file, o.end)
		size, offset := o.size, int64(o.rate*overlap(o.from, o.to, at))
		switch {
		case o.write && size == 0:
			size = offset
		case size == 0:
			size = 1 << 40
		}
		if o.from <= at && at < o.to {
			f.Files = append(f.Files, detect.File{PID: o.pid, FD: o.fd, Path: path, Key: key, Size: size, Write: o.write,
				Offset: offset, Modified: o.modified})
		}
		if f.Exact && last < o.from && o.from <= at {
			f.Events = append(f.Events, detect.Event{At: o.from, PID: o.pid, Path: path, Key: key})
		}
	}
	slices.SortStableFunc(f.Events, func(a, b detect.Event) int { return int(a.At - b.At) })
	return f
}

func (s *story) find() (found []detect.Found) {
	d := New("job")
	last, every := s.start, s.every
	if every == 0 {
		every = second
	}
	for n := 1; ; n++ {
		at := s.start + time.Duration(n)*every
		if s.gaps[n] && at < s.end {
			continue
		}
		if at >= s.end+s.left {
			return append(found, d.Close(s.facts(last, at))...)
		}
		found = append(found, d.Look(s.facts(last, at))...)
		last = at
	}
}

// training has epochs with so many workers, the main process, and a validation with its own workers.
func training(epochs, workers, checkers int, lengths ...time.Duration) (s *story, begins []time.Duration) {
	s = &story{end: 10 * second}
	s.procs = []proc{{pid: 1, cpu: 0.4, to: math.MaxInt64}}
	pid := 2
	for e := range epochs {
		length := lengths[min(e, len(lengths)-1)]
		begins = append(begins, s.end)
		s.generation(&pid, workers, length, 400e6)
		if checkers > 0 {
			s.generation(&pid, checkers, length/5, 70e6)
		}
	}
	s.procs[0].to = s.end
	return s, begins
}

// generation adds workers that read so many bytes.
func (s *story) generation(pid *int, workers int, length time.Duration, bytes float64) {
	from := s.end
	for w := range workers {
		born := from + time.Duration(w)*30*time.Millisecond
		s.procs = append(s.procs, proc{pid: *pid, from: born, to: from + length, cpu: 0.3})
		*pid++
	}
	s.reads = append(s.reads, reading{from, from + length, bytes / length.Seconds(), 0})
	s.end = from + length + 200*time.Millisecond
}

// check compares the begins, and the end of each with the next begin.
func check(t *testing.T, found []detect.Found, begins []time.Duration, within time.Duration) {
	t.Helper()
	if len(found) != len(begins) {
		t.Fatalf("%d epochs were found, want %d: %v", len(found), len(begins), found)
	}
	for i, f := range found {
		if f.Kind != window.Epoch || !f.HasEpoch || f.Epoch != i+1 || f.Confidence < Threshold || f.Job != "job" {
			t.Errorf("epoch %d is %+v, want number %d and a confidence of %v at least", i, f, i+1, Threshold)
		}
		if d := f.Start - begins[i]; d < -within || d > within {
			t.Errorf("epoch %d begins at %v, want %v", i, f.Start, begins[i])
		}
		if i+1 < len(found) && f.End != found[i+1].Start {
			t.Errorf("epoch %d ends at %v, want %v: the begin of the next", i, f.End, found[i+1].Start)
		}
	}
}

func TestWorkers(t *testing.T) {
	for _, c := range []struct{ workers, checkers int }{{2, 0}, {4, 0}, {4, 2}, {3, 3}, {1, 0}} {
		t.Run(fmt.Sprintf("%d and %d", c.workers, c.checkers), func(t *testing.T) {
			s, begins := training(5, c.workers, c.checkers, 20*second)
			check(t, s.find(), begins, startTick)
		})
	}
}

func TestTheFirstEpochMayBeCold(t *testing.T) {
	s, begins := training(4, 4, 0, 70*second, 9*second)
	check(t, s.find(), begins, startTick)
}

// The last epoch has a validation as the others do, also if that has no workers.
func TestTheLastEpochEndsAsOthers(t *testing.T) {
	s, _ := training(4, 2, 0, 20*second)
	for i := range s.procs { // 6 s after each training, in the main process
		if e := (i - 1) / 2; i > 0 {
			s.procs[i].from += time.Duration(e) * 6 * second
			s.procs[i].to += time.Duration(e) * 6 * second
		}
	}
	for e := range s.reads {
		s.reads[e].from += time.Duration(e) * 6 * second
		s.reads[e].to += time.Duration(e) * 6 * second
	}
	s.end += 4 * 6 * second
	s.procs[0].to = s.end
	found := s.find()
	if len(found) != 4 {
		t.Fatalf("%d epochs were found, want 4: %v", len(found), found)
	}
	last := found[3]
	if d := last.End - s.end; d < -second || d > second {
		t.Errorf("the last epoch ends at %v, want %v", last.End, s.end)
	}
}

func TestSanityCheck(t *testing.T) {
	s := &story{end: 10 * second}
	s.procs = []proc{{pid: 1, cpu: 0.5, to: math.MaxInt64}}
	pid, begins := 2, []time.Duration(nil)
	s.generation(&pid, 2, 3*second, 10e6)
	for range 4 {
		begins = append(begins, s.end)
		s.generation(&pid, 2, 15*second, 300e6)
		s.generation(&pid, 2, 4*second, 60e6)
	}
	s.procs[0].to = s.end
	check(t, s.find(), begins, startTick)
}

// Of a job that was not followed from its start, the first epoch is not known as a whole.
func TestFollowedLater(t *testing.T) {
	s, begins := training(5, 3, 0, 20*second)
	s.start = begins[1] + 5*second
	check(t, s.find(), begins[2:], startTick)
}

func TestLooksMissed(t *testing.T) {
	s, begins := training(5, 3, 2, 20*second)
	s.gaps = map[int]bool{}
	for n := range 120 {
		s.gaps[n] = n%4 != 0
	}
	check(t, s.find(), begins, startTick)
}

// A machine that is busy takes seconds for each fork.
func TestSlowForks(t *testing.T) {
	s, begins := training(4, 3, 0, 60*second)
	for i := range s.procs[1:] {
		s.procs[i+1].from += time.Duration(i%3) * 2500 * time.Millisecond
	}
	check(t, s.find(), begins, startTick)
}

// An epoch that did something else is not part of its neighbours.
func TestAnEpochThatDiffers(t *testing.T) {
	s, begins := training(5, 3, 0, 20*second)
	s.reads[2].bytes *= 1.4
	found := s.find()
	for _, f := range found {
		if f.End-f.Start > 21*second {
			t.Errorf("an epoch of %v was found, want 20 s at most: %v", f.End-f.Start, f)
		}
	}
	if len(found) != len(begins)-2 { // the one before it has no end that is known
		t.Errorf("%d epochs were found, want %d: %v", len(found), len(begins)-2, found)
	}
}

// A search for parameters starts a program for each trial, which does what the one before did.
func TestSearchIsNoEpoch(t *testing.T) {
	for _, each := range []int{1, 3} {
		s, _ := training(6, each, 0, 20*second)
		s.procs[0].cpu = 0.001
		for _, drives := range []bool{false, true} {
			for i := range s.procs[1:] {
				s.procs[i+1].drives = drives
			}
			if found := s.find(); len(found) > 0 {
				t.Errorf("%d at a time, on a GPU: %v: %v was found, want nothing", each, drives, found)
			}
		}
	}
}

// xargs -P starts the next process whenever one ends.
func TestPoolOfShortProcessesIsNoEpoch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	s := &story{procs: []proc{{pid: 1, cpu: 0.001, to: math.MaxInt64}}, end: 300 * second}
	pid := 2
	for range 3 {
		for at := time.Duration(0); at < s.end; {
			length := second + time.Duration(random.Int64N(int64(4*second)))
			s.procs = append(s.procs, proc{pid: pid, from: at, to: at + length, cpu: 1})
			s.reads = append(s.reads, reading{at, at + length, 10e6, 0})
			pid++
			at += length + 10*time.Millisecond
		}
	}
	slices.SortFunc(s.procs, func(a, b proc) int { return int(a.from - b.from) })
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// A server that starts two helpers now and then, which read the same each time.
func TestTimerIsNoEpoch(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.3, to: math.MaxInt64, drives: true}}}
	pid := 2
	for range 10 {
		s.generation(&pid, 2, 3*second, 50e6)
		s.end += 27 * second
	}
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// shards is a program that reads files one after another, in each epoch in another order if shuffled.
func shards(epochs, files int, each time.Duration, shuffled bool) (s *story, begins []time.Duration) {
	s = &story{procs: []proc{{pid: 1, cpu: 0.7, to: math.MaxInt64}}, end: 5 * second}
	random := rand.New(rand.NewPCG(2, 2))
	for range epochs {
		begins = append(begins, s.end)
		order := random.Perm(files)
		if !shuffled {
			slices.Sort(order)
		}
		for _, file := range order {
			s.opens = append(s.opens, open{pid: 1, fd: 5, file: uint64(file + 100), from: s.end, to: s.end + each, rate: 20e6})
			s.end += each
		}
		s.reads = append(s.reads, reading{begins[len(begins)-1], s.end, 20e6, 0})
	}
	s.procs[0].to = s.end
	return s, begins
}

func TestShards(t *testing.T) {
	for _, exact := range []bool{false, true} {
		for _, files := range []int{1, 6, 30} {
			s, begins := shards(4, files, 3300*time.Millisecond, false)
			if files == 1 {
				s, begins = shards(4, 1, 17*second, false)
			}
			s.exact = exact
			t.Run(fmt.Sprintf("%d files, exact %v", files, exact), func(t *testing.T) {
				within := 200 * time.Millisecond
				check(t, s.find(), begins, within)
			})
		}
	}
}

// Many small files in an order that changes are seen only where the kernel reports opens.
func TestShuffledFiles(t *testing.T) {
	s, begins := shards(5, 400, 60*time.Millisecond, true)
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found by looks alone, want nothing", found)
	}
	s.exact = true
	check(t, s.find(), begins, 400*time.Millisecond)
}

// Files of the start-up are opened once, and some time before the first epoch.
func TestStartUp(t *testing.T) {
	s, begins := shards(4, 40, 300*time.Millisecond, false)
	for i := range 4 {
		s.opens = append(s.opens, open{
			pid: 1, fd: 9 + i, file: uint64(i + 1),
			from: second + time.Duration(i)*second, to: 4*second + 500*time.Millisecond,
		})
	}
	s.exact = true
	check(t, s.find(), begins, 100*time.Millisecond)
}

func TestRewind(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.7, to: 85 * second}}, end: 85 * second}
	begins := []time.Duration{5 * second, 25 * second, 45 * second, 65 * second}
	for _, b := range begins { // the descriptor stays the same
		s.opens = append(s.opens, open{pid: 1, fd: 5, file: 7, from: b, to: b + 20*second, rate: 10e6})
		s.reads = append(s.reads, reading{b, b + 20*second, 10e6, 0})
	}
	check(t, s.find(), begins, 150*time.Millisecond)
}

// A server loads its whole model again now and then. It reads at once, and not as it works.
func TestReloadIsNoEpoch(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.7, to: math.MaxInt64, drives: true}}, end: 200 * second, exact: true}
	for at := 5 * second; at < s.end; at += 20 * second {
		s.opens = append(s.opens, open{pid: 1, fd: 5, file: 7, from: at, to: at + 2*second, rate: 100e6})
		s.reads = append(s.reads, reading{at, at + 2*second, 100e6, 0})
	}
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// A program may read files that another one writes again after each time: a ring buffer holds a stream.
func TestFilesThatAreWrittenAgainAreNoEpoch(t *testing.T) {
	for _, files := range []int{1, 6, 30} {
		s, begins := shards(4, files, 20*second/time.Duration(files), false)
		for i := range s.opens {
			s.opens[i].modified = int64(i/files + 1)
		}
		if found := s.find(); len(found) > 0 {
			t.Errorf("%d files: %v was found, want nothing", files, found)
		}
		for i := range s.opens {
			s.opens[i].modified = 7
		}
		check(t, s.find(), begins, 500*time.Millisecond)
	}
}

// Reports of opens may be missing for a while, and they do not have the time of the last write. The files are the same.
func TestReportsOfOpensThatAreMissing(t *testing.T) {
	for _, files := range []int{1, 2, 6} {
		for _, modified := range []int64{0, 7} {
			s, begins := shards(6, files, 24*second/time.Duration(files), false)
			s.exact = true
			for i := range s.opens {
				s.opens[i].modified = modified
			}
			s.blind = func(at time.Duration) bool {
				return slices.ContainsFunc(begins[1:], func(b time.Duration) bool { return at > b && at-b < 3*second })
			}
			t.Run(fmt.Sprintf("%d files, last write %d", files, modified), func(t *testing.T) {
				check(t, s.find(), begins, 1500*time.Millisecond)
			})
		}
	}
}

// pairs is a training whose two workers stay, and read a file each in every step. order gives the files of a step of an
// epoch.
func pairs(steps int, each time.Duration, order func(epoch, step int) [2]int) (s *story, begins []time.Duration) {
	const rate = 20e6 // bytes per second
	s = &story{end: 5 * second, every: second / 10, procs: []proc{{pid: 1, cpu: 0.7, drives: true}, {pid: 2, cpu: 0.3},
		{pid: 3, cpu: 0.3}}}
	for e := range 5 {
		begins = append(begins, s.end)
		for k := range steps {
			for w, file := range order(e, k) {
				s.opens = append(s.opens, open{pid: 2 + w, fd: 5 + k%2, file: uint64(100 + file), from: s.end, to: s.end + each,
					rate: rate, size: int64(rate * each.Seconds())})
			}
			s.end += each
		}
		s.reads = append(s.reads, reading{begins[e], s.end, 2 * rate, 0.5})
	}
	for i := range s.procs {
		s.procs[i].to = s.end
	}
	return s, begins
}

// A worker may begin a shuffled pass with the file that it read last: that file is of both.
func TestPassThatBeginsWithTheLastFile(t *testing.T) {
	s, begins := pairs(4, 500*time.Millisecond, func(e, k int) [2]int {
		if e%2 == 1 {
			return [2]int{3 - k, 4 + (k+e)%4}
		}
		return [2]int{k, 4 + (k+e)%4}
	})
	check(t, s.find(), begins, 150*time.Millisecond)
}

// Looks are a second apart, and workers read most right after their start: those of the next epoch may have begun
// before a look that finds that the last ones have ended.
func TestWorkersThatReadFirst(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.4, to: math.MaxInt64, drives: true}}, end: 5 * second}
	var begins []time.Duration
	pid := 2
	for e := range 6 {
		from, length := s.end, 3*second+time.Duration(e*370%900)*time.Millisecond
		begins = append(begins, from)
		s.generation(&pid, 3, length, 40e6)
		s.reads = append(s.reads, reading{from, from + 200*time.Millisecond, 100e6, 0})
		s.end = from + length + 20*time.Millisecond
	}
	s.procs[0].to = s.end
	check(t, s.find(), begins, startTick)
}

// Items that are drawn at random, with replacement, have no epochs.
func TestReplacementIsNoEpoch(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	s := &story{procs: []proc{{pid: 1, cpu: 0.7, to: math.MaxInt64}}, end: 200 * second, exact: true}
	for at := second; at < s.end; at += 50 * time.Millisecond {
		s.opens = append(s.opens, open{
			pid: 1, fd: 5, file: uint64(random.IntN(300)), from: at, to: at + 40*time.Millisecond, rate: 10e6,
		})
	}
	s.reads = []reading{{second, s.end, 8e6, 0}}
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// mapped is a training that maps one file in each epoch, and touches pages of it. It stores a checkpoint after each, in
// so much time.
func mapped(epochs int, length, store time.Duration) (s *story, spans [][2]time.Duration) {
	s = &story{end: 5 * second, every: second / 10}
	for range epochs {
		from, to := s.end, s.end+length
		spans = append(spans, [2]time.Duration{from, to})
		s.opens = append(s.opens, open{pid: 1, fd: 5, file: 7, from: from, to: to})
		s.maps = append(s.maps, touch{1, from, to, 10e6 / length.Seconds()})
		s.reads = append(s.reads, reading{from, to, 0, 0.9})
		if s.end = to; store > 0 {
			s.opens = append(s.opens, open{
				pid: 1, fd: 6, file: uint64(100 + len(spans)), from: to, to: to + store, rate: 50e6, write: true,
			})
			s.end += store
		}
	}
	s.end += second
	s.procs = []proc{{pid: 1, cpu: 0.3, to: s.end, drives: true}}
	return s, spans
}

// checkBoth compares begins and ends.
func checkBoth(t *testing.T, found []detect.Found, spans [][2]time.Duration, within time.Duration) {
	t.Helper()
	if len(found) != len(spans) {
		t.Fatalf("%d epochs were found, want %d: %v", len(found), len(spans), found)
	}
	for i, f := range found {
		if begin, end := f.Start-spans[i][0], f.End-spans[i][1]; begin.Abs() > within || end.Abs() > within {
			t.Errorf("epoch %d is off by %v and %v, want %v at most", i+1, begin, end, within)
		}
	}
}

// The descriptor of a mapped file shows no position, and the file may be open at each look. Memory falls back.
func TestMappedAgain(t *testing.T) {
	for _, length := range []time.Duration{1300 * time.Millisecond, 8 * second} {
		s, spans := mapped(4, length, 0)
		checkBoth(t, s.find(), spans, 300*time.Millisecond)
	}
	s, _ := mapped(4, 1300*time.Millisecond, 0)
	if s.every = second; len(s.find()) > 0 {
		t.Error("epochs of 1.3 s were found by a look a second, want nothing")
	}
}

// What is stored belongs to no epoch, also if a checkpoint was loaded before and takes as long as an epoch.
func TestStoredAfterAnEpoch(t *testing.T) {
	s, spans := mapped(4, 2*second, 2*second)
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
	s.opens = append(s.opens, open{pid: 1, fd: 5, file: 3, from: second, to: 3 * second, rate: 50e6, size: 100e6})
	s.reads = append(s.reads, reading{second, 3 * second, 50e6, 0})
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
}

// A process is started to store a checkpoint. It makes the data ready before it opens the file.
func TestStoredByOthers(t *testing.T) {
	s, spans := mapped(4, 3*second, 4*second)
	for i := range s.opens {
		if o := &s.opens[i]; o.write {
			o.pid = 10 + i
			s.procs = append(s.procs, proc{pid: o.pid, from: o.from, to: o.to, cpu: 0.5})
			o.from += 2 * second
		}
	}
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
}

// A checkpoint in the middle of an epoch does not end it.
func TestStoredInAnEpoch(t *testing.T) {
	s, spans := mapped(4, 6*second, 0)
	for i, x := range spans {
		s.opens = append(s.opens, open{
			pid: 1, fd: 6, file: uint64(100 + i), from: x[0] + 3*second, to: x[0] + 4*second, rate: 50e6, write: true,
		})
	}
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
}

// Workers and a checkpoint take turns. The workers live for less than half of the time.
func TestStoredAfterWorkers(t *testing.T) {
	s := &story{end: 10 * second, every: second / 10}
	s.procs = []proc{{pid: 1, cpu: 0.5, to: math.MaxInt64, drives: true}}
	pid, spans := 2, [][2]time.Duration(nil)
	for i := range 4 {
		begin := s.end
		s.generation(&pid, 2, 5*second, 100e6)
		spans = append(spans, [2]time.Duration{begin, s.end})
		s.opens = append(s.opens, open{
			pid: 1, fd: 6, file: uint64(100 + i), from: s.end, to: s.end + 7*second, rate: 50e6, write: true,
		})
		s.end += 7 * second
	}
	s.procs[0].to = s.end
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
}

// A checkpoint that is written at once is open between two looks. The program waits until it is on the disk.
func TestStoredAtOnce(t *testing.T) {
	s, spans := mapped(4, 3*second, 3*second)
	s.opens = slices.DeleteFunc(s.opens, func(o open) bool { return o.write })
	for _, x := range spans {
		s.wrote = append(s.wrote, reading{x[1], x[1] + second/20, 2e9, 0})
	}
	checkBoth(t, s.find(), spans, 300*time.Millisecond)
}

// Processes that store checkpoints come in generations, too.
func TestSaversAreNoEpochs(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.7, to: math.MaxInt64, drives: true}}, end: 10 * second, every: second / 10}
	pid := 2
	for range 6 {
		first := pid
		s.generation(&pid, 2, 5*second, 1e3)
		for p := first; p < pid; p++ {
			s.opens = append(s.opens, open{pid: p, fd: 6, file: uint64(100 + p), from: s.end - 3*second, to: s.end - second,
				rate: 50e6, write: true})
		}
		s.end += 3 * second
	}
	s.procs[0].to = s.end
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// Workers open a database, which may be written, and inherit the log of their program.
func TestWorkersWithADatabase(t *testing.T) {
	s, begins := training(5, 3, 0, 20*second)
	for _, p := range s.procs[1:] {
		s.opens = append(s.opens,
			open{pid: p.pid, fd: 5, file: 7, from: p.from, to: p.to, write: true, size: 80e6},
			open{pid: p.pid, fd: 6, file: 8, from: p.from, to: p.to, write: true, size: 1e5})
	}
	s.wrote = []reading{{0, s.end, 3e5, 0}}
	check(t, s.find(), begins, startTick)
}

// Two models are loaded one after another, and again later. Other data would be epochs.
func TestModelsAreNoData(t *testing.T) {
	for end, want := range map[string]int{".safetensors": 0, ".gguf": 0, ".tar": 4} {
		s, _ := shards(4, 2, 5*second, false)
		for i := range s.opens {
			s.opens[i].end = end
		}
		if found := s.find(); len(found) != want {
			t.Errorf("of %s: %d epochs were found, want %d: %v", end, len(found), want, found)
		}
	}
}

// A model that is loaded slowly, and later from memory: the second time all is read at once.
func TestALoadFromMemoryIsNoEpoch(t *testing.T) {
	s := &story{procs: []proc{{pid: 1, cpu: 0.7, to: 24 * second, drives: true}}, end: 24 * second}
	for i, at := range []time.Duration{2 * second, 14 * second} {
		to := at + 8*second
		if i > 0 {
			to = at + second
		}
		s.opens = append(s.opens, open{pid: 1, fd: 5, file: 7, from: at, to: to, rate: 400e6 / (to - at).Seconds()})
		s.reads = append(s.reads, reading{at, to, 400e6 / (to - at).Seconds(), 0})
	}
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

// hidden is a training over shards in a new order in each epoch, whose first epoch is slow. Later, files are open so
// shortly that few looks see one.
func hidden(epochs int) (s *story, spans [][2]time.Duration) {
	s = &story{procs: []proc{{pid: 1, cpu: 0.7, drives: true}}, end: 5 * second, every: second / 10}
	random := rand.New(rand.NewPCG(4, 4))
	for e := range epochs {
		begin, reads := s.end, 550*time.Millisecond
		if e > 0 {
			reads = 20 * time.Millisecond
		}
		each := reads + 150*time.Millisecond
		for _, file := range random.Perm(20) {
			rate := 20e6 / reads.Seconds()
			s.opens = append(s.opens, open{
				pid: 1, fd: 5, file: uint64(file + 100), from: s.end, to: s.end + reads, rate: rate, size: 20e6,
			})
			s.reads = append(s.reads, reading{s.end, s.end + reads, rate, 0}, reading{s.end + reads, s.end + each, 0, 0.9})
			s.end += each
		}
		spans = append(spans, [2]time.Duration{begin, s.end})
	}
	s.end += second
	s.procs[0].to = s.end
	return s, spans
}

func TestFilesHardlyShow(t *testing.T) {
	s, spans := hidden(4)
	checkBoth(t, s.find(), spans, 500*time.Millisecond)
}

// Only so many epochs in a row are counted by what they read.
func TestHiddenForLong(t *testing.T) {
	s, spans := hidden(12)
	found := s.find()
	if len(found) < 2 || len(found) > 1+maxCounted {
		t.Fatalf("%d epochs were found, want 2 to %d: %v", len(found), 1+maxCounted, found)
	}
	checkBoth(t, found, spans[:len(found)], 500*time.Millisecond)
}

// A job is listed for some time after its last process has ended. Its last epoch is found at once.
func TestListedAfterItsEnd(t *testing.T) {
	s, begins := training(4, 3, 0, 20*second)
	s.left = 60 * second
	check(t, s.find(), begins, startTick)
}

func TestFilesThatAreWrittenDoNotCount(t *testing.T) {
	s, _ := shards(5, 6, 3*second, false)
	for i := range s.opens {
		s.opens[i].write = true
	}
	if found := s.find(); len(found) > 0 {
		t.Errorf("%v was found, want nothing", found)
	}
}

func TestSameFactsGiveTheSame(t *testing.T) {
	s, _ := training(5, 3, 2, 20*second)
	if one, two := s.find(), s.find(); !reflect.DeepEqual(one, two) {
		t.Errorf("got %v, then %v", one, two)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	d, ok := New("job").(*Detector)
	if !ok {
		t.Fatal("New returns another type")
	}
	past := &story{}
	inode := uint64(0)
	for n := range 300 {
		f := &detect.Facts{At: time.Duration(n+1) * second, Last: time.Duration(n) * second, Past: past, Exact: true}
		for i := range 5000 { // each process and file is new
			inode++
			key := detect.FileKey{Inode: inode}
			f.Processes = append(f.Processes, detect.Process{PID: int(inode), Started: f.Last + time.Duration(i)})
			f.Files = append(f.Files,
				detect.File{PID: int(inode), FD: i, Key: key, Path: "/data/x", Size: 1 << 30, Write: i%2 == 0})
			f.Events = append(f.Events, detect.Event{At: f.At, PID: int(inode), Key: key, Path: "/data/x"})
		}
		d.Look(f)
	}
	p := &d.passes
	for what, n := range map[string][2]int{
		"files": {len(p.cur), maxFiles}, "descriptors": {len(p.fds), maxFDs}, "processes": {len(d.workers.known), maxKnown},
		"generations": {len(d.workers.open), maxOpen}, "spans": {len(d.spans[byWorkers]), maxSpans}, "newest": {len(p.newest), maxFDs},
		"early": {len(p.early), maxEarly}, "residents": {len(d.maps.residents), maxResidents},
		"points": {len(d.maps.points), maxPoints}, "writes": {len(d.stores.open), maxWrites},
		"stores": {len(d.stores.all), maxStores}, "lone spans": {len(p.lone.spans), 2}, "full": {len(p.full), maxFiles},
	} {
		if n[0] > n[1] {
			t.Errorf("%d %s are kept, want %d at most", n[0], what, n[1])
		}
	}
}

// Facts can be anything: what is found is in order and has a length.
func FuzzLook(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(5), uint8(40))
	}
	f.Fuzz(func(t *testing.T, seed uint64, pids, files uint8) {
		random := rand.New(rand.NewPCG(seed, 1))
		d := New("job")
		at, until, number := time.Duration(0), time.Duration(0), 0
		past := &noise{random}
		for range 200 {
			last := at
			at += time.Duration(random.Int64N(int64(3 * second)))
			l := &detect.Facts{At: at, Last: last, Past: past, Exact: random.IntN(2) == 0}
			for range random.IntN(int(pids) + 1) {
				started := at - time.Duration(random.Int64N(int64(90*second)))
				l.Processes = append(l.Processes, detect.Process{PID: random.IntN(9), Started: started,
					CPUTime: time.Duration(random.Int64N(int64(second))), Drives: random.IntN(2) == 0})
			}
			for range random.IntN(int(files) + 1) {
				key := detect.FileKey{Inode: random.Uint64N(uint64(files) + 1)}
				l.Files = append(l.Files, detect.File{
					PID: random.IntN(9), FD: random.IntN(4) - 1, Key: key, Path: "/d/x", Offset: random.Int64N(1 << 30),
				})
				when := last + time.Duration(random.Int64N(int64(second)))
				l.Events = append(l.Events, detect.Event{At: when, Key: key, Path: "/d/x", Close: random.IntN(2) == 0})
			}
			found := d.Look(l)
			if random.IntN(40) == 0 {
				found = append(found, d.Close(l)...)
			}
			for _, e := range found {
				if number++; e.Start < until || e.End <= e.Start || e.Epoch != number ||
					e.Confidence < Threshold || e.Confidence > 1 ||
					e.StartOpen < 0 || e.EndOpen < 0 {
					t.Fatalf("%+v was found, want number %d after %v, with a length", e, number, until)
				}
				until = e.End
			}
		}
	})
}

type noise struct{ *rand.Rand }

func (n *noise) Level(detect.Quantity, time.Duration) (float64, bool) {
	return n.Float64() * 1e9, n.IntN(3) > 0
}

func (n *noise) Reading(detect.Quantity) (time.Duration, bool) { return 0, false }

// 64 jobs with 10 processes and 20 files, at the look of a second in which nothing begins or ends.
func BenchmarkLook64(b *testing.B) {
	var jobs []detect.Detector
	f := &detect.Facts{Past: &story{}}
	for i := range 10 {
		f.Processes = append(f.Processes, detect.Process{PID: i, Started: time.Duration(i) * second})
	}
	for i := range 20 {
		key := detect.FileKey{Inode: uint64(i)}
		f.Files = append(f.Files, detect.File{PID: i % 10, FD: i, Path: "/data/set/part.tar", Key: key, Size: 1 << 30})
	}
	for range 64 {
		d := New("job")
		d.Look(f)
		jobs = append(jobs, d)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range jobs {
			d.Look(f)
		}
	}
}

// partsOf is a job that goes through its files with new workers for each part of them. Looks are ten a second, and show
// some of the files of a part. With again, all parts are of the same files, in another order.
func partsOf(parts, files int, size int64, again bool) *story {
	random := rand.New(rand.NewPCG(1, 2))
	s := &story{every: 100 * time.Millisecond, end: 5 * second}
	s.procs = []proc{{pid: 1, cpu: 0.4, to: math.MaxInt64, drives: true}}
	s.opens = append(s.opens, open{pid: 1, fd: 9, file: 9999, from: 2 * second, to: time.Hour, size: 1 << 30}) // a log
	pid := 2
	const length = 4 * second
	for part := range parts {
		from, first := s.end, pid
		s.generation(&pid, 2, length, float64(files)*float64(size))
		order := random.Perm(files)
		for i, n := range order {
			file := uint64(100 + n)
			if !again {
				file += uint64(part * files)
			}
			each := length / time.Duration(files)
			begin := from + 60*time.Millisecond + time.Duration(i)*each
			s.opens = append(s.opens, open{pid: first + i%2, fd: 5, file: file, rate: 1, size: size,
				from: begin, to: begin + max(each*2/3, 40*time.Millisecond)})
		}
		for w := range 2 { // they inherit the log
			s.opens = append(s.opens, open{pid: first + w, fd: 9, file: 9999, size: 1 << 30,
				from: from + 30*time.Millisecond, to: from + length})
		}
	}
	s.procs[0].to = s.end
	return s
}

// Parts of one pass over a data set do the same work as each other, but not with the same files.
func TestPartsOfOnePassAreNoEpochs(t *testing.T) {
	for files, size := range map[int]int64{1: 300 << 20, 3: 100 << 20, 40: 2 << 20, 200: 1 << 20} {
		if found := partsOf(6, files, size, false).find(); len(found) > 0 {
			t.Errorf("%d files of %d bytes in each part: %d were found, want nothing: %v", files, size, len(found), found)
		}
		if found := partsOf(6, files, size, true).find(); len(found) != 6 {
			t.Errorf("%d files of %d bytes again and again: %d epochs were found, want 6", files, size, len(found))
		}
	}
}
