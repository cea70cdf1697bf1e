package loads

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// card is a job that reads a model, copies it to a GPU and works there. Its memory is read once a second.
type card struct {
	steady
	copied, until time.Duration // the copy
	jump          bool          // all memory is taken at the begin of the copy
	work          time.Duration // from when on the GPU works; 0 for never
	writes        bool          // what it reads
}

const (
	modelSize = 400 << 20
	context   = 300 << 20
)

func (c card) memory(at time.Duration) uint64 {
	at = (at - 50*ms).Truncate(time.Second) + 50*ms // the newest reading
	switch {
	case at <= c.copied:
		return context
	case at >= c.until || c.jump:
		return context + modelSize
	}
	return context + uint64(float64(modelSize)*float64(at-c.copied)/float64(c.until-c.copied))
}

func (c card) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	if q == detect.WriteBytes && c.writes {
		return c.moved(at), true
	}
	if q != detect.GPUBusy {
		return c.steady.Level(q, at)
	}
	if c.work == 0 {
		return 0, true
	}
	return max(0, at-c.work).Seconds(), true
}

// load returns what is found of a job that reads a model, and copies it.
func (c card) load(more func(f *detect.Facts)) (all []detect.Found) {
	d := New("job")
	for last, at := time.Second, 1100*ms; at < 3*time.Minute; last, at = at, at+100*ms {
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: c, HasGPU: true, GPUMemory: c.memory(at), Listening: 0,
			Processes: []detect.Process{{PID: 7}}}
		if at > c.from && at < c.to {
			f.Files = []detect.File{{PID: 7, FD: 3, Path: "/m/model.pt", Size: modelSize, Offset: int64(c.moved(at))}}
		}
		if more != nil {
			more(f)
		}
		all = append(all, d.Look(f)...)
	}
	return all
}

func newCard(copied, until, work time.Duration, jump bool) card {
	return card{steady{5 * time.Second, 9 * time.Second, 100 << 20, detect.ReadChars}, copied, until, jump, work, false}
}

// A load ends when its weights are on the GPU: as the memory of it grew, or when the GPU begins to work.
func TestCopyToGPU(t *testing.T) {
	for name, c := range map[string]struct {
		card
		want, margin time.Duration
	}{
		"no copy":               {newCard(time.Hour, time.Hour, 0, false), 9 * time.Second, 300 * ms},
		"while reading":         {newCard(5*time.Second, 9*time.Second, 0, false), 9 * time.Second, 300 * ms},
		"of several seconds":    {newCard(9*time.Second, 13400*ms, 0, false), 13400 * ms, 300 * ms},
		"then work":             {newCard(9*time.Second, 10700*ms, 10700*ms, false), 10700 * ms, 100 * ms},
		"taken at once, work":   {newCard(9*time.Second, 10700*ms, 10700*ms, true), 10700 * ms, 100 * ms},
		"work long after":       {newCard(9*time.Second, 9900*ms, 15*time.Second, false), 9900 * ms, 600 * ms},
		"of something else":     {newCard(12500*ms, 16*time.Second, 16*time.Second, false), 9 * time.Second, 300 * ms},
		"the GPU works already": {newCard(9*time.Second, 10700*ms, time.Second, false), 10700 * ms, 600 * ms},
	} {
		all := c.load(nil)
		if len(all) != 1 {
			t.Errorf("%s: got %+v, want one load", name, all)
			continue
		}
		if got := all[0].End; (got - c.want).Abs() > c.margin {
			t.Errorf("%s: got the end %v, want %v", name, got, c.want)
		}
	}
}

// The growth of a GPU's memory by the next load does not belong to the load before.
func TestCopyOfTheNext(t *testing.T) {
	c := newCard(11*time.Second, 14*time.Second, 0, false)
	all := c.load(func(f *detect.Facts) {
		if f.At > 10500*ms && f.At < 14*time.Second {
			f.Files = append(f.Files, detect.File{PID: 7, FD: 3, Path: "/n/other.pt", Size: modelSize,
				Offset: int64(float64(modelSize) * (f.At - 10500*ms).Seconds() / 3.5)})
		}
	})
	if len(all) == 0 || (all[0].End-9*time.Second).Abs() > 300*ms {
		t.Errorf("got %+v, want a load that ended at 9s", all)
	}
}

// A file without an extension is a model if as much as it has comes to a GPU, by the process that reads it.
func TestUnnamed(t *testing.T) {
	copying := newCard(9*time.Second, 11*time.Second, 11*time.Second, false)
	copying.writes = true
	for name, c := range map[string]struct {
		card
		path   string
		drives bool
		want   int
	}{
		"copied":            {newCard(9*time.Second, 11*time.Second, 11*time.Second, false), "/store/0a1b2c", true, 1},
		"as it writes":      {copying, "/store/0a1b2c", true, 0},
		"not copied":        {newCard(time.Hour, time.Hour, 11*time.Second, false), "/store/0a1b2c", true, 0},
		"read by a worker":  {newCard(9*time.Second, 11*time.Second, 11*time.Second, false), "/store/0a1b2c", false, 0},
		"of another format": {newCard(9*time.Second, 11*time.Second, 11*time.Second, false), "/store/train.tar", true, 0},
	} {
		all := c.load(func(f *detect.Facts) {
			f.Processes[0].Drives = c.drives
			for i := range f.Files {
				f.Files[i].Path = c.path
			}
		})
		if len(all) != c.want {
			t.Errorf("%s: got %+v, want %d", name, all, c.want)
		}
	}
}

// The shards of a model may be links into a store of files that are named by their hash.
func TestFilesOfAStore(t *testing.T) {
	reading := newCard(5*time.Second, 9500*ms, 9500*ms, false)
	for name, c := range map[string]struct {
		first, second string
		want          int
	}{
		"of one store": {"/store/0a/0a1b2c" + strings.Repeat("d", 58), "/store/ff/ff1b2c" + strings.Repeat("e", 58), 1},
		"of git":       {"/o/0a/1b/0a1b2c" + strings.Repeat("d", 58), "/o/ff/1b/ff1b2c" + strings.Repeat("e", 58), 1},
		"of two":       {"/a/0a/0a1b2c" + strings.Repeat("d", 58), "/b/ff/ff1b2c" + strings.Repeat("e", 58), 0},
	} {
		all := reading.load(func(f *detect.Facts) {
			f.Processes[0].Drives = true
			for i := range f.Files {
				x := &f.Files[i]
				x.Size, x.Path = modelSize/2, c.first
				if x.Offset > modelSize/2 {
					x.Offset, x.Path = x.Offset-modelSize/2, c.second
				}
			}
		})
		if len(all) != c.want {
			t.Errorf("%s: got %+v, want %d", name, all, c.want)
		}
	}
}

// The workers of a training read files with features, which are named as models are. The process with the GPU does not.
func TestWorkersLoadNothing(t *testing.T) {
	for name, want := range map[string]int{"/x/part-a.pt": 0, "/x/model.pt": 1} {
		c := newCard(time.Hour, time.Hour, 0, false)
		all := c.load(func(f *detect.Facts) {
			f.Processes = append(f.Processes, detect.Process{PID: 8, Drives: true})
			for i := range f.Files {
				f.Files[i].Path = name
			}
		})
		if len(all) != want {
			t.Errorf("%s: got %+v, want %d", name, all, want)
		}
	}
}

// Where the memory of a GPU is read ten times a second, the end of a load is known as well as that.
func TestCopyReadOften(t *testing.T) {
	for _, until := range []time.Duration{9500 * ms, 9950 * ms, 10100 * ms, 10530 * ms} {
		for _, small := range []bool{false, true} {
			c := newCard(9*time.Second, until, 0, false)
			total := float64(modelSize)
			all := c.load(func(f *detect.Facts) {
				f.GPUMemoryAt = f.At - 30*ms
				part := (f.GPUMemoryAt - c.copied).Seconds() / (c.until - c.copied).Seconds()
				f.GPUMemory = context + uint64(total*min(max(0, part), 1))
				if small { // growths of less than what counts at once
					f.GPUMemory += 10 << 30
				}
			})
			if len(all) != 1 {
				t.Errorf("until %v: got %+v, want one load", until, all)
				continue
			}
			got, margin := all[0], 150*ms
			if small {
				margin = 250 * ms
			}
			if (got.End-until).Abs() > margin || got.EndOpen > 2*margin {
				t.Errorf("until %v, small %v: got %v, %v of it open", until, small, got.End, got.EndOpen)
			}
		}
	}
}

// A long load has more growths than are kept: those of a second become one.
func TestManySteps(t *testing.T) {
	var g gpuMemory
	const each, steps = 32 << 20, 200
	for i := range steps {
		at := time.Second + time.Duration(i)*100*ms
		g.look(&detect.Facts{At: at + 20*ms, HasGPU: true, GPUMemory: context + uint64(i)*each, GPUMemoryAt: at})
	}
	if len(g.steps) > maxSteps {
		t.Fatalf("got %d steps, want at most %d", len(g.steps), maxSteps)
	}
	if grew := g.grew(0, time.Minute); grew != (steps-1)*each {
		t.Errorf("got a growth of %.0f bytes, want %d", grew, (steps-1)*each)
	}
	for i, s := range g.steps {
		if s.at-s.last > readEvery || i > 0 && s.last != g.steps[i-1].at {
			t.Errorf("got the step %+v, want none over a second and no gap", s)
		}
	}
	if last := g.steps[len(g.steps)-1]; last.at-last.last != 100*ms {
		t.Errorf("got %v for the newest step, want 100ms", last.at-last.last)
	}
}
