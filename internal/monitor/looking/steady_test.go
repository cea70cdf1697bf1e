package looking

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// bench is a Looker at one job of one process, with the clock and the files of a test.
type bench struct {
	t        *testing.T
	looker   *Looker
	readings *sampling.Readings
	root     string
	at       time.Duration
	files    []process.File
	reading  sample.Process
	chars    uint64
	calls    int
	queried  process.Key // the newest one
	seen     int         // looks that the detector got
	newest   int         // files in the last of them
}

const pid = 4711

func (b *bench) ModelFiles(of process.Key, _ process.FilesWanted) (process.Files, error) {
	b.calls++
	b.queried = of
	return process.Files{List: b.files}, nil
}

func (*bench) Watch(string, bool) {}
func (*bench) Keep(string)        {}
func (*bench) Left(string) bool   { return false }
func (*bench) Release(string)     {}

func (*bench) EachStirred(func(string)) {}

func (b *bench) Look(f *detect.Facts) []detect.Found {
	b.seen++
	b.newest = len(f.Files)
	return nil
}
func (*bench) Close(*detect.Facts) []detect.Found { return nil }
func (*bench) Busy() bool                         { return false }
func (*bench) Counts() bool                       { return false }

func newBench(t *testing.T) *bench {
	t.Helper()
	r, err := sampling.New(sampling.Config{Interval: 100 * time.Millisecond}, &sampling.Problems{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, readings: r, root: t.TempDir(), at: time.Minute,
		files: []process.File{{FD: 3, Path: "/data/train.dat", Device: 1, Inode: 2, Size: 1 << 30}}}
	b.memory(1000, 100)
	r.Apply(&recording.Entry{Mark: &recording.Mark{Op: recording.Follow, ID: "job"}})
	b.reading = sample.Process{PID: pid, Job: "job"}
	b.looker = New(Config{
		Root: b.root, Readings: r, Jobs: b, New: []detect.New{func(string) detect.Detector { return b }},
		Found: func([]detect.Found) {}, Now: func() time.Duration { return b.at },
	})
	b.looker.direct = b
	return b
}

// memory sets the memory of the process, in pages.
func (b *bench) memory(size, files int) {
	b.t.Helper()
	dir := filepath.Join(b.root, "proc", strconv.Itoa(pid))
	text := strconv.Itoa(size) + " 900 " + strconv.Itoa(files) + " 1 0 2 0\n"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "statm"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// second is one in which the job worked and read so many bytes. It returns how often its files were listed.
func (b *bench) second(read uint64) (calls int) {
	b.at += time.Second
	b.chars += read
	b.reading.CPUTime += 50 * time.Millisecond
	stamp := sample.Stamp{Mono: b.at, Wall: time.Unix(1000, 0).Add(b.at)}
	b.readings.Apply(&recording.Entry{Source: "process", Sample: &sample.Sample{
		At: stamp, Processes: []sample.Process{b.reading},
		Jobs: []sample.Job{{ID: "job", Processes: 1, HasIO: true, CPUTime: b.reading.CPUTime, ReadChars: b.chars}},
	}})
	before := b.calls
	b.looker.Look()
	return b.calls - before
}

// rarely brings the job to where it is looked at rarely, a second after a look.
func (b *bench) rarely() {
	b.t.Helper()
	b.second(100 << 20) // at its start
	for range steadyLooks + 5 {
		b.second(1 << 20)
	}
	for i := 0; b.second(1<<20) == 0; i++ {
		if i > 3 {
			b.t.Fatal("got no look in 4 s, want one every 3 s")
		}
	}
}

// A job that has the same files open is looked at every third second.
func TestSteady(t *testing.T) {
	b := newBench(t)
	for i := range steadyLooks {
		if b.second(1<<20) != 1 {
			t.Fatalf("second %d: got no look, want one: the job is not known for long", i)
		}
	}
	b.rarely()
	before := b.calls
	for range 30 {
		b.second(1 << 20)
	}
	if got := b.calls - before; got != 10 {
		t.Errorf("got %d looks in 30 s, want 10", got)
	}
	if b.seen != b.calls {
		t.Errorf("got %d looks of the detector, want those %d", b.seen, b.calls)
	}
}

// What may be a model that is loaded is seen within a second, and what shows nowhere within three.
func TestSteadyEnds(t *testing.T) {
	model := process.File{FD: 4, Path: "/models/a.safetensors", Device: 1, Inode: 9, Size: 1 << 24}
	for name, c := range map[string]struct {
		change func(b *bench)
		read   uint64
		within int
	}{
		"reads":        {func(*bench) {}, 16 << 20, 1},
		"reads a part": {func(*bench) {}, 4 << 20, 1},
		"maps":         {func(b *bench) { b.memory(1000+16<<20/os.Getpagesize(), 100) }, 1 << 20, 1},
		"touches":      {func(b *bench) { b.memory(1000, 100+16<<20/os.Getpagesize()) }, 1 << 20, 1},
		"is new":       {func(b *bench) { b.reading.Started = sample.Origin() + time.Second }, 1 << 20, 1},
		"only opens":   {func(*bench) {}, 1 << 20, 3},
		"reads little": {func(*bench) {}, 2 << 20, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.rarely()
			b.files = append(b.files, model)
			c.change(b)
			for i := 1; ; i++ {
				if b.second(c.read) > 0 {
					if i != c.within || b.newest != 2 {
						t.Errorf("got %d files after %d s, want 2 after %d s", b.newest, i, c.within)
					}
					break
				}
				if i == 5 {
					t.Fatal("got no look in 5 s")
				}
			}
			for i := range steadyLooks - 1 {
				if b.second(1<<20) != 1 {
					t.Errorf("second %d after a new file: got no look, want one", i)
				}
			}
		})
	}
}
