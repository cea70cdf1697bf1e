package loads

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// prefix is a job that reads the first part of a model again and again.
type prefix struct {
	steady
	part   int64         // bytes
	pause  time.Duration // between two passes, in which the file is closed
	atOnce bool          // a call returns the whole part: the position does not move before
}

func (p prefix) pass() time.Duration {
	return time.Duration(float64(p.part) / p.rate * float64(time.Second))
}

func (p prefix) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	if q != p.quantity {
		return 0, true
	}
	since, each := min(max(at, p.from), p.to)-p.from, p.pass()+p.pause
	return float64(since/each)*float64(p.part) + min(float64(p.part), p.rate*(since%each).Seconds()), true
}

func (p prefix) file(at time.Duration) []detect.File {
	now := (at - p.from) % (p.pass() + p.pause)
	if at < p.from || at > p.to || now > p.pass() {
		return nil
	}
	one := detect.File{PID: 7, FD: 3, Path: "/m/model.safetensors", Size: 300 << 20}
	if !p.atOnce {
		one.Offset = int64(p.rate * now.Seconds())
	}
	return []detect.File{one}
}

// The same bytes count once, however often they are read. Half of the model would be a load.
func TestPrefixReadAgain(t *testing.T) {
	for name, p := range map[string]prefix{
		"without pauses":       {part: 8 << 20},
		"with pauses":          {part: 8 << 20, pause: 270 * ms},
		"a part for each call": {part: 8 << 20, pause: 270 * ms, atOnce: true},
		"a larger part":        {part: 40 << 20, pause: 50 * ms},
	} {
		for _, rate := range []float64{50 << 20, 100 << 20, 400 << 20} {
			p.steady = steady{5 * time.Second, 25*time.Second + 130*ms, rate * 1.037, detect.ReadChars}
			if all := play(t, p, 60*time.Second, p.file); len(all) != 0 {
				t.Errorf("%s, %.0f bytes a second: got %d loads, first %+v; want none", name, rate, len(all), all[0])
			}
		}
	}
}

// A program opens a model and reads its header several times before it loads it.
func TestLoadAfterHeaders(t *testing.T) {
	s := steady{7 * time.Second, 8 * time.Second, 300 << 20, detect.ReadChars}
	all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
		one := detect.File{PID: 7, FD: 3, Path: "/m/model.safetensors", Size: 300 << 20, Offset: 100_000}
		switch {
		case at > 5*time.Second && at < 7*time.Second && at%(400*ms) < 200*ms:
		case at >= s.from && at <= s.to:
			one.Offset = int64(s.moved(at))
		default:
			return nil
		}
		return []detect.File{one}
	})
	if len(all) != 1 || all[0].End < s.to-200*ms || all[0].End > s.to+200*ms {
		t.Errorf("got %+v, want one load up to %v", all, s.to)
	}
}

// What a program reads that keeps none of it, and drives no GPU, is read for a checksum or a copy.
func TestBytesThatStayNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		resident int64
		drives   bool // the GPU that the job uses
		want     int
	}{
		"nothing stays":               {6 << 20, false, 0},
		"it stays":                    {450 << 20, false, 1},
		"as numbers of a quarter":     {120 << 20, false, 1},
		"through a buffer to the GPU": {6 << 20, true, 1},
		"it is not known what it has": {0, false, 1},
	} {
		s := steady{5 * time.Second, 9 * time.Second, 100 << 20, detect.ReadChars}
		d := New("job")
		var all []detect.Found
		for last, at := time.Second, 1100*ms; at < 40*time.Second; last, at = at, at+100*ms {
			f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, HasGPU: true, Listening: -1,
				Processes: []detect.Process{{PID: 6, Drives: !c.drives}}}
			if at > s.from && at < s.to { // the program that reads ends with the file
				f.Processes = append(f.Processes, detect.Process{PID: 7, Drives: c.drives, Resident: c.resident})
				f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.safetensors", Size: modelSize,
					Offset: int64(s.moved(at))}}
			}
			all = append(all, d.Look(f)...)
		}
		if len(all) != c.want {
			t.Errorf("%s: got %+v, want %d loads", name, all, c.want)
		}
	}
}

// mapper is a job that maps files, touches a part of each, and unmaps it. Looks are ten a second.
type mapper struct {
	files []string
	part  int64   // bytes that are touched of each
	rate  float64 // bytes per second by which they come into memory
	pause time.Duration
	times int // for all files
}

func (m mapper) play(t *testing.T) (all []detect.Found) {
	t.Helper()
	const from, size, libraries = 5 * time.Second, 300 << 20, 40 << 20
	d := New("job")
	each := time.Duration(float64(m.part)/m.rate*float64(time.Second)) + m.pause
	var listed []detect.File
	listedAt, before := time.Second, time.Second
	for last, at := time.Second, 1100*ms; at < 60*time.Second; last, at = at, at+100*ms {
		pass, memory := int((at-from)/each), int64(libraries)
		now := at >= from && pass < m.times*len(m.files)
		if now {
			memory += min(m.part, int64(m.rate*((at-from)%each).Seconds()))
		}
		if at >= listedAt+time.Second || memory > libraries+32<<20 { // mappings are listed as rarely
			before, listedAt, listed = listedAt, at, nil
			if now {
				listed = []detect.File{{PID: 7, FD: -1, Path: m.files[pass%len(m.files)], Size: size, Mapped: size}}
			}
		}
		all = append(all, d.Look(&detect.Facts{Job: "job", At: at, Last: last, Files: listed, HasGPU: true, Listening: -1,
			Past: steady{quantity: detect.ReadChars}, Processes: []detect.Process{{PID: 7, Drives: true, Memory: memory,
				At: at, Last: last, MapsLast: before}}})...)
	}
	return all
}

// The first part of a file that is mapped and touched again and again counts once.
func TestPrefixMappedAgain(t *testing.T) {
	for _, part := range []int64{8 << 20, 40 << 20} {
		for _, rate := range []float64{30 << 20, 100.7 * (1 << 20), 1033 << 20} {
			for _, pause := range []time.Duration{0, 30 * ms, 270 * ms} {
				m := mapper{[]string{"/m/model.safetensors"}, part, rate, pause, 60}
				if all := m.play(t); len(all) != 0 {
					t.Errorf("%d bytes at %.0f a second, pause %v: got %d loads, first %+v; want none", part, rate, pause,
						len(all), all[0])
				}
			}
		}
	}
}

// A model whose parts are mapped one after another is loaded, though memory is given back after each.
func TestPartsMappedInTurn(t *testing.T) {
	m := mapper{[]string{"/m/model-00001-of-00003.safetensors", "/m/model-00002-of-00003.safetensors",
		"/m/model-00003-of-00003.safetensors"}, 300 << 20, 200 << 20, 0, 1}
	if all := m.play(t); len(all) != 1 {
		t.Errorf("got %+v, want one load", all)
	}
}
