package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// noise makes values that compress badly.
type noise struct{ *rand.Rand }

func newNoise() noise { return noise{rand.New(rand.NewPCG(1, 2))} }

func (r noise) values(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = r.Float64() * 1e9
	}
	return values
}

func (r noise) text(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

// server has the columns of 8 GPUs, 8 disks and a machine, with values of a training that never pauses: each value
// of each interval differs from the one before.
type server struct {
	noise
	columns []Column
	values  []float64
}

func newServer(gpus, disks int) *server {
	s := &server{noise: newNoise()}
	add := func(of Kind, id string) {
		for _, q := range Quantities {
			if q.Of == of {
				s.columns = append(s.columns, Column{Of: of, ID: id, Name: id, Quantity: q.Name, Step: q.Step})
			}
		}
	}
	add(Machine, "")
	for i := range gpus {
		add(GPU, fmt.Sprintf("GPU-5d3c1f9e-8f1c-2a90-d3b7-e645c2b1a%03d", i))
	}
	for i := range disks {
		add(Disk, fmt.Sprintf("nvme%dn1", i))
	}
	s.values = make([]float64, len(s.columns))
	return s
}

// next returns the values of the next interval.
func (s *server) next() []float64 {
	level := 0.7 + 0.2*s.NormFloat64() // of all: an epoch has phases
	for i, c := range s.columns {
		typical, spread := 0.8, 0.05
		switch c.Quantity {
		case Power, PowerMax:
			typical, spread = 600, 0.05
		case Temperature:
			typical, spread = 70, 0.01
		case MemoryUsed:
			typical, spread = 120e9, 0.0001
		case SMClock:
			typical, spread = 1.9e9, 0.01
		case ReadBytes, ReadBytesMax:
			typical, spread = 2e9, 0.2
		case WriteBytes, WriteBytesMax:
			typical, spread = 1e7, 0.5
		case Reads:
			typical, spread = 16e3, 0.2
		case Writes:
			typical, spread = 100, 0.5
		case ReadAwait, ReadAwaitMax, WriteAwait, WriteAwaitMax:
			typical, spread = 4e-4, 0.3
		case Queue, QueueMax:
			typical, spread = 8, 0.3
		}
		s.values[i] = math.Abs(typical * level * (1 + spread*s.NormFloat64()))
	}
	return s.values
}

const day = int(24 * time.Hour / period)

// writeDay writes the intervals of a day.
func (s *server) writeDay(t testing.TB, folder string) {
	w := opened(t, folder, DefaultMaxSize)
	for i := range day {
		w.Add(Devices, s.columns, at(i), period, s.next())
		if i%6 == 5 {
			flush(t, w, at(i))
		}
	}
	closed(t, w, at(day))
}

// maxWeek is what a week of 8 GPUs and 8 disks may take, in bytes.
const maxWeek = 50_000_000

func TestWeekFits(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes a week")
	}
	folder := t.TempDir()
	s := newServer(8, 8)
	s.writeDay(t, folder) // all days are alike
	total := int64(0)
	files, err := Files(folder)
	for _, f := range files {
		total += f.Size
	}
	values := float64(day * len(s.columns))
	t.Logf("%d columns: %.1f MB a week, %.2f bytes a value", len(s.columns), 7*float64(total)/1e6, float64(total)/values)
	if err != nil || 7*total > maxWeek {
		t.Errorf("got %d bytes a week, %v, want at most %d", 7*total, err, maxWeek)
	}
}

// One operation is a minute: six intervals, and a block of them.
func BenchmarkMinute(b *testing.B) {
	w := opened(b, b.TempDir(), DefaultMaxSize)
	s := newServer(8, 8)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range 6 {
			w.Add(Devices, s.columns, at(6*i+j), period, s.next())
		}
		flush(b, w, began)
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(time.Minute), "%core")
}

// One operation reads a day.
func BenchmarkDay(b *testing.B) {
	folder := b.TempDir()
	newServer(8, 8).writeDay(b, folder)
	b.ReportAllocs()
	for b.Loop() {
		if got := readFolder(b, folder, time.Time{}, time.Time{}); len(got.numbers) != day {
			b.Fatalf("got %d intervals, want %d", len(got.numbers), day)
		}
	}
}
