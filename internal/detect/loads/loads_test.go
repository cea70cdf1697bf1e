package loads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

const ms = time.Millisecond

// steady is a job that reads or writes at a constant rate between two moments.
type steady struct {
	from, to time.Duration
	rate     float64 // bytes per second
	quantity detect.Quantity
}

func (s steady) moved(at time.Duration) float64 {
	return s.rate * (min(max(at, s.from), s.to) - s.from).Seconds()
}

func (s steady) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	if q != s.quantity {
		return 0, true
	}
	return s.moved(at), true
}

func (s steady) Reading(detect.Quantity) (time.Duration, bool) { return time.Hour, true }

// play looks at a job once a second, and ten times while the detector is busy. It returns what was found.
func play(
	t *testing.T, s detect.Past, until time.Duration, files func(at time.Duration) []detect.File,
) (all []detect.Found) {
	t.Helper()
	d := New("job")
	last := time.Second
	for at := time.Second + 300*ms; at < until; {
		f := &detect.Facts{Job: "job", At: at, Last: last, Files: files(at), Past: s, Listening: -1,
			Processes: []detect.Process{{PID: 7}}}
		all = append(all, d.Look(f)...)
		last = at
		if d.Busy() {
			at += 100 * ms
		} else {
			at += time.Second
		}
	}
	return all
}

func TestFileReadOnce(t *testing.T) {
	for _, from := range []time.Duration{5 * time.Second, 5*time.Second + 350*ms, 5*time.Second + 900*ms} {
		s := steady{from, from + 4*time.Second, 100 << 20, detect.ReadChars}
		all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
			if at < s.from || at > s.to {
				return nil
			}
			return []detect.File{{PID: 7, FD: 3, Path: "/models/llama/model.safetensors", Size: 400 << 20,
				Offset: int64(s.moved(at))}}
		})
		if len(all) != 1 {
			t.Fatalf("from %v: got %+v, want one load", from, all)
		}
		got := all[0]
		if got.Kind != window.ModelLoad || got.Model != "llama" || got.Path != "/models/llama/model.safetensors" {
			t.Errorf("from %v: got %+v, want a load of llama", from, got)
		}
		if (got.Start-s.from).Abs() > 300*ms || (got.End-s.to).Abs() > 300*ms {
			t.Errorf("from %v: got %v to %v, want %v to %v", from, got.Start, got.End, s.from, s.to)
		}
	}
}

func TestNoLoad(t *testing.T) {
	read := steady{5 * time.Second, 9 * time.Second, 100 << 20, detect.ReadChars}
	for name, file := range map[string]detect.File{
		"a header":    {Path: "/m/a.gguf", Size: 40 << 30, Offset: 100_000},
		"a data set":  {Path: "/data/train.bin", Size: 400 << 20},
		"a log":       {Path: "/var/log/server.log", Size: 400 << 20},
		"a tokenizer": {Path: "/m/tokenizer.json", Size: 400 << 20},
	} {
		all := play(t, read, 40*time.Second, func(at time.Duration) []detect.File {
			if at < read.from || at > read.to {
				return nil
			}
			one := file
			one.PID, one.FD = 7, 3
			if one.Offset == 0 {
				one.Offset = int64(read.moved(at))
			}
			return []detect.File{one}
		})
		if len(all) != 0 {
			t.Errorf("%s: got %+v, want nothing", name, all)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	s := steady{5 * time.Second, 9 * time.Second, 50 << 20, detect.WriteBytes}
	all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
		if at < s.from || at > s.to {
			return nil
		}
		return []detect.File{{PID: 7, FD: 3, Path: "/out/step-100/model.pt", Size: int64(s.moved(at)), Write: true}}
	})
	if len(all) != 1 || all[0].Kind != window.Checkpoint {
		t.Fatalf("got %+v, want one checkpoint", all)
	}
	if got := all[0]; (got.Start-s.from).Abs() > 500*ms || (got.End-s.to).Abs() > 300*ms {
		t.Errorf("got %v to %v, want %v to %v", got.Start, got.End, s.from, s.to)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"/m/llama/model-00001-of-00004.safetensors":   "llama",
		"/m/llama-7b.gguf":                            "llama-7b",
		"/triton/resnet/1/model.plan":                 "resnet",
		"/c/models--org--name/blobs/0123456789abcdef": "org/name",
		"/m/llama/consolidated.00.pth":                "llama",
	} {
		if got := modelOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The job is followed when a part of its file has been read.
func TestFollowedLate(t *testing.T) {
	s := steady{500 * ms, 4500 * ms, 100 << 20, detect.ReadChars}
	d := New("job")
	var all []detect.Found
	// position moves in steps: a call that is going on counts only when it returns.
	position := func(at time.Duration) int64 { return int64(s.moved(at)) / (24 << 20) * (24 << 20) }
	for last, at := 2*time.Second, 2500*ms; at < 20*time.Second; last, at = at, at+100*ms {
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, Listening: -1,
			Processes: []detect.Process{{PID: 7, Started: 100 * ms}}}
		if at < s.to {
			f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: position(at)}}
		}
		all = append(all, d.Look(f)...)
	}
	if len(all) != 1 {
		t.Fatalf("got %+v, want one load", all)
	}
	if got := all[0]; (got.Start-s.from).Abs() > 300*ms || (got.End-s.to).Abs() > 300*ms {
		t.Errorf("got %v to %v, want %v to %v", got.Start, got.End, s.from, s.to)
	}
}

// A file that was read before the job was followed, and stays open, is no load.
func TestOpenBefore(t *testing.T) {
	s := steady{0, 0, 0, detect.ReadChars}
	all := play(t, s, 40*time.Second, func(time.Duration) []detect.File {
		return []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: 400 << 20}}
	})
	if len(all) != 0 {
		t.Errorf("got %+v, want nothing", all)
	}
}

// A load is going on, or its last byte was just read, when the agent stops or the job ends.
func TestCloseWhileLoading(t *testing.T) {
	s := steady{2 * time.Second, 6 * time.Second, 100 << 20, detect.ReadChars}
	for name, c := range map[string]struct {
		at             time.Duration
		stopping, want bool
	}{
		"stop, reading":      {5 * time.Second, true, true},
		"stop, pending":      {8500 * ms, true, true},
		"job ended, reading": {5 * time.Second, false, true},
		"job ended, pending": {8500 * ms, false, false},
	} {
		d := New("job")
		last := time.Second
		var f *detect.Facts
		for at := last + 100*ms; at <= c.at; last, at = at, at+100*ms {
			f = &detect.Facts{Job: "job", At: at, Last: last, Past: s, Listening: -1,
				Processes: []detect.Process{{PID: 7}}}
			if at > s.from && at < s.to {
				f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: int64(s.moved(at))}}
			}
			if early := d.Look(f); len(early) > 0 {
				t.Fatalf("%s: got %+v before the end, want nothing", name, early)
			}
		}
		end := &detect.Facts{Job: "job", At: c.at + 100*ms, Last: c.at, Past: s, Listening: -1, Stopping: c.stopping}
		if all := d.Close(end); len(all) != 1 || all[0].Unfinished != c.want {
			t.Errorf("%s: got %+v, want one load, unfinished: %v", name, all, c.want)
		}
	}
}

// A vocabulary is read. Weights of the same size in a cache of Hugging Face are mapped.
func TestSmallBlob(t *testing.T) {
	for mapped, want := range map[int64]int{0: 0, 12 << 20: 1} {
		s := steady{5 * time.Second, 7 * time.Second, 6 << 20, detect.ReadBytes}
		all := play(t, s, 40*time.Second, func(at time.Duration) []detect.File {
			if at < s.from || at > s.to {
				return nil
			}
			return []detect.File{{PID: 7, FD: -1, Path: "/hub/models--a--b/blobs/" + strings.Repeat("0a", 32),
				Size: 12 << 20, Mapped: mapped}}
		})
		if len(all) != want {
			t.Errorf("mapped %d: got %+v, want %d", mapped, all, want)
		}
	}
}

// A job with a GPU may become a server, but not after its processes have ended: it is still listed for a while.
func TestJobEnded(t *testing.T) {
	s := steady{2 * time.Second, 6 * time.Second, 100 << 20, detect.ReadChars}
	d := New("job")
	var all []detect.Found
	for last, at := time.Second, 1100*ms; at < 40*time.Second; last, at = at, at+100*ms {
		if at > 9*time.Second {
			at += 10 * time.Second // of an idle job
		}
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, HasGPU: true}
		if at < 9*time.Second {
			f.Processes = []detect.Process{{PID: 7}}
		}
		if at > s.from && at < s.to {
			f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: int64(s.moved(at))}}
		}
		all = append(all, d.Look(f)...)
	}
	if len(all) != 1 || all[0].Unfinished || (all[0].End-s.to).Abs() > 300*ms {
		t.Errorf("got %+v, want one load that ended at %v", all, s.to)
	}
}

// A look takes time in proportion to its files, however many there are.
func TestManyFiles(t *testing.T) {
	took := func(files int) time.Duration {
		d := New("job")
		f := &detect.Facts{Job: "job", Past: steady{}, Listening: -1, Processes: []detect.Process{{PID: 7}}}
		for i := range files {
			f.Files = append(f.Files, detect.File{PID: 7, FD: i, Path: fmt.Sprintf("/m/%d/model.pt", i), Size: 1 << 30})
		}
		best := time.Hour
		for range 20 {
			f.Last, f.At = f.At, f.At+time.Second
			began := time.Now()
			d.Look(f)
			best = min(best, time.Since(began))
		}
		return best
	}
	if few, many := took(maxGroups), took(16*maxGroups); many > 64*few {
		t.Errorf("got %v for %d files, and %v for 16 times as many, want 16 times as long", few, maxGroups, many)
	}
}

// A process that is not asked in each look: what it opened and closed is as uncertain as that leaves it.
func TestProcessSeenRarely(t *testing.T) {
	s := steady{5 * time.Second, 9 * time.Second, 100 << 20, detect.ReadChars}
	d := New("job")
	var all []detect.Found
	queried, known := time.Second, time.Second
	var files []detect.File
	for last, at := time.Second, 1100*ms; at < 30*time.Second; last, at = at, at+100*ms {
		if at%(2*time.Second) == 100*ms { // every two seconds
			queried, known = at, queried
			files = nil
			if at > s.from && at < s.to {
				files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: int64(s.moved(at))}}
			}
		}
		all = append(all, d.Look(&detect.Facts{Job: "job", At: at, Last: last, Files: files, Past: s, Listening: -1,
			Processes: []detect.Process{{PID: 7, At: queried, Last: known}}})...)
	}
	if len(all) != 1 {
		t.Fatalf("got %+v, want one load", all)
	}
	got := all[0]
	if got.StartOpen < 1900*ms || got.EndOpen < 1900*ms {
		t.Errorf("got %v and %v left open, want the two seconds between looks", got.StartOpen, got.EndOpen)
	}
	if (got.Start-s.from).Abs() > time.Second || (got.End-s.to).Abs() > time.Second {
		t.Errorf("got %v to %v, want about %v to %v", got.Start, got.End, s.from, s.to)
	}
}

// A file on a server shows its size when it is closed: what the job writes shows that it is a checkpoint.
func TestCheckpointWithoutASize(t *testing.T) {
	for rate, want := range map[float64]int{12 << 20: 1, 64 << 10: 0} {
		s := steady{5 * time.Second, 9 * time.Second, rate, detect.WriteBytes}
		all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
			if at < s.from || at > s.to {
				return nil
			}
			return []detect.File{{PID: 7, FD: 3, Path: "/out/step-100/model.pt", Size: 320, Write: true}}
		})
		if len(all) != want {
			t.Fatalf("of %.0f bytes/s: got %+v, want %d checkpoints", rate, all, want)
		}
		if want > 0 && ((all[0].Start-s.from).Abs() > 500*ms || (all[0].End-s.to).Abs() > 300*ms || all[0].Bytes < 45<<20) {
			t.Errorf("got %+v, want %v to %v and 48 MiB", all[0], s.from, s.to)
		}
	}
}

// The next checkpoint of a training is another one, however soon it follows. The parts of one checkpoint are one.
func TestNextCheckpoint(t *testing.T) {
	s := steady{2 * time.Second, 20 * time.Second, 50 << 20, detect.WriteBytes}
	for name, c := range map[string]struct {
		paths []string
		want  int
	}{
		"steps":       {[]string{"/out/step-1.pt", "/out/step-2.pt", "/out/step-3.pt"}, 3},
		"parts":       {[]string{"/out/model-00001-of-00003.safetensors", "/out/model-00002-of-00003.safetensors"}, 1},
		"ranks":       {[]string{"/out/__0_0.distcp", "/out/__1_0.distcp"}, 1},
		"other names": {[]string{"/out/model.pt", "/out/optimizer.pt"}, 1},
	} {
		all := play(t, s, 40*time.Second, func(at time.Duration) (open []detect.File) {
			for i, path := range c.paths { // each for three seconds, half a second after the one before
				from := 5*time.Second + time.Duration(i)*3500*ms
				if at >= from && at < from+3*time.Second {
					open = append(open, detect.File{PID: 7, FD: 3, Path: path, Size: int64((at - from) / ms * 50_000), Write: true})
				}
			}
			return open
		})
		if len(all) != c.want {
			t.Errorf("%s: got %+v, want %d", name, all, c.want)
		}
	}
}

// A rank reads only some of the parts that the names of its files count, and reads them again in its next load.
func TestLoadAgainWithPartsMissing(t *testing.T) {
	s := steady{2 * time.Second, 30 * time.Second, 100 << 20, detect.ReadChars}
	all := play(t, s, 60*time.Second, func(at time.Duration) []detect.File {
		for _, from := range []time.Duration{5 * time.Second, 12 * time.Second} {
			if at >= from && at < from+4*time.Second {
				return []detect.File{{PID: 7, FD: 3, Path: "/m/llama/model-00001-of-00004.safetensors", Size: 400 << 20,
					Offset: int64((at - from) / ms * (100 << 20) / 1000)}}
			}
		}
		return nil
	})
	if len(all) != 2 {
		t.Fatalf("got %+v, want two loads", all)
	}
	for i, from := range []time.Duration{5 * time.Second, 12 * time.Second} {
		if got := all[i]; (got.Start-from).Abs() > time.Second || (got.End-from-4*time.Second).Abs() > 300*ms {
			t.Errorf("got %v to %v, want %v to %v", got.Start, got.End, from, from+4*time.Second)
		}
	}
}

// A file that is read begins with its open, also if the first byte takes seconds. A mapping that is touched seconds
// later begins then.
func TestBeginWithoutBytes(t *testing.T) {
	for name, mapped := range map[string]bool{"read": false, "touched": true} {
		d := New("job")
		open, first, end := 5*time.Second, 8*time.Second, 12*time.Second
		s := steady{first, end, 100 << 20, detect.ReadChars}
		var all []detect.Found
		for last, at := time.Second, 1100*ms; at < 40*time.Second; last, at = at, at+100*ms {
			f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, Listening: -1, Processes: []detect.Process{{PID: 7}}}
			if at > open && at < end {
				one := detect.File{PID: 7, FD: 3, Path: "/m/model.gguf", Size: 400 << 20, Offset: int64(s.moved(at))}
				if mapped {
					one.FD, one.Offset, one.Mapped = -1, 0, 400<<20
					f.Past = steady{}
				}
				f.Files = append(f.Files, one)
			}
			if mapped {
				f.Processes[0].Memory = int64(s.moved(at))
			}
			all = append(all, d.Look(f)...)
		}
		want := open
		if mapped {
			want = first
		}
		if len(all) != 1 || (all[0].Start-want).Abs() > 200*ms {
			t.Errorf("%s: got %+v, want one load from %v", name, all, want)
		}
	}
}

// Of a file that was being read when the job was followed, the position says when that began.
func TestBeganBefore(t *testing.T) {
	s := steady{500 * ms, 4500 * ms, 100 << 20, detect.ReadChars}
	d := New("job")
	var all []detect.Found
	for last, at := 2*time.Second, 2500*ms; at < 20*time.Second; last, at = at, at+100*ms {
		// The counters of a job begin with its first reading, and those of its calls are late.
		past := steady{2 * time.Second, 4500 * ms, 60 << 20, detect.ReadChars}
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: past, Listening: -1,
			Processes: []detect.Process{{PID: 7, Started: 100 * ms}}}
		if at < s.to {
			f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: 400 << 20, Offset: int64(s.moved(at))}}
		}
		all = append(all, d.Look(f)...)
	}
	if len(all) != 1 || (all[0].Start-s.from).Abs() > 100*ms {
		t.Errorf("got %+v, want one load from %v", all, s.from)
	}
}

// slowly is a job whose counters are read once a second until a look saw its file, and ten times then.
type slowly struct {
	steady
	phase, now, often time.Duration
}

func (s *slowly) read(at time.Duration) time.Duration {
	if s.often > 0 && at >= s.often {
		return at.Truncate(100 * ms)
	}
	return (at - s.phase).Truncate(time.Second) + s.phase
}

func (s *slowly) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	return s.steady.Level(q, min(at, s.read(s.now)))
}

func (s *slowly) Reading(detect.Quantity) (time.Duration, bool) { return s.read(s.now), true }

// The bytes of a reading that is older than the look say how long ago the load began.
func TestCountersReadRarely(t *testing.T) {
	for n := range 100 {
		from := 5*time.Second + time.Duration(n%10)*100*ms
		s := &slowly{steady: steady{from, from + 4*time.Second, 100 << 20, detect.ReadChars}}
		s.phase = time.Duration(n/10)*100*ms + 70*ms
		all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
			s.now = at
			if at < s.from || at > s.to {
				return nil
			}
			if s.often == 0 {
				s.often = at + 50*ms
			}
			return []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: modelSize, Offset: int64(s.moved(at))}}
		})
		if len(all) != 1 {
			t.Fatalf("from %v: got %+v, want one load", from, all)
		}
		if got := all[0].Start; (got - from).Abs() > 150*ms {
			t.Errorf("from %v, phase %v: got the begin %v, want it to be within 0.15 s", from, s.phase, got)
		}
	}
}

// What a job wrote and reads right after that is a download. One of several checkpoints is not, nor is what is read
// later.
func TestDownload(t *testing.T) {
	const size = 100 << 20
	for name, c := range map[string]struct {
		written []string
		read    time.Duration
		want    bool
		saved   int // checkpoints, where no download is
	}{
		"a download":             {[]string{"/m/llama-7b/model.safetensors"}, 11 * time.Second, true, 0},
		"renamed":                {[]string{"/m/llama-7b/model.safetensors.part"}, 11 * time.Second, true, 0},
		"in parts":               {[]string{"/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"}, 11 * time.Second, true, 0},
		"read later":             {[]string{"/m/llama-7b/model.safetensors"}, 14 * time.Second, false, 1},
		"the second checkpoint":  {[]string{"/o/step-10/model.pt", "/o/step-20/model.pt"}, 11 * time.Second, false, 2},
		"of files in one folder": {[]string{"/o/model-10.pt", "/o/model-20.pt"}, 11 * time.Second, false, 2},
	} {
		s := steady{c.read, c.read + 2*time.Second, size / 2, detect.ReadChars}
		all := play(t, s, 40*time.Second, func(at time.Duration) (files []detect.File) {
			for i, path := range c.written { // three seconds apart, the last one up to 9 s
				end := 9*time.Second - 3*time.Second*time.Duration(len(c.written)-1-i)
				if at > end-1500*ms && at < end {
					files = append(files, detect.File{PID: 7, FD: 3, Path: path, Size: size, Write: true})
				}
			}
			if at >= s.from && at < s.to {
				path := strings.TrimSuffix(c.written[len(c.written)-1], ".part")
				files = append(files, detect.File{PID: 7, FD: 3, Path: path, Size: size,
					Offset: int64(s.moved(at))})
			}
			return files
		})
		got, saved := false, 0
		for _, f := range all {
			if f.Kind == window.Checkpoint {
				saved++
			}
			if f.Kind == window.ModelLoad {
				got = f.Phases[0].Name == Download && f.Start < 9*time.Second
				if !got && (f.Start-s.from).Abs() > 300*ms {
					t.Errorf("%s: got the begin %v, want %v", name, f.Start, s.from)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: got a download: %v of %+v, want %v", name, got, all, c.want)
		}
		if !c.want && saved != c.saved {
			t.Errorf("%s: got %d checkpoints, want %d: %+v", name, saved, c.saved, all)
		}
	}
}

// behind is a job whose counters are a tenth of a second old.
type behind struct {
	steady
	now time.Duration
}

func (l *behind) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	return l.steady.Level(q, min(at, l.now-100*ms))
}

func (l *behind) Reading(detect.Quantity) (time.Duration, bool) { return l.now - 100*ms, true }

// A file was open for less than the time between two looks. What was read of it shows in the look after its close.
func TestBytesAfterTheClose(t *testing.T) {
	l := &behind{steady: steady{5060 * ms, 5080 * ms, 20 << 30, detect.ReadChars}}
	d := New("job")
	var all []detect.Found
	for last, at := 950*ms, 1050*ms; at < 20*time.Second; last, at = at, at+100*ms {
		l.now = at
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: l, Listening: -1, Processes: []detect.Process{{PID: 7}}}
		if at > 5*time.Second && at < 5100*ms {
			f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.safetensors", Size: modelSize}}
		}
		all = append(all, d.Look(f)...)
	}
	if len(all) != 1 || (all[0].Start-5*time.Second).Abs() > 150*ms || (all[0].End-5080*ms).Abs() > 150*ms {
		t.Errorf("got %+v, want one load at 5s", all)
	}
}
