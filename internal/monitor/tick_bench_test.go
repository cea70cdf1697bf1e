package monitor

import (
	"os"
	"testing"
	"time"
)

// BenchmarkTick is what one reading of this machine costs, with this process followed as a job.
func BenchmarkTick(b *testing.B) {
	m, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	m.Tick()
	defer m.Stop()
	if err := m.Jobs.Follow("bench", os.Getpid(), "", false); err != nil {
		b.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond) // a new job is looked at more often
	b.ReportAllocs()
	for b.Loop() {
		m.Tick()
	}
}

// BenchmarkMoment is what the edge of a window costs.
func BenchmarkMoment(b *testing.B) {
	m, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	m.Tick()
	defer m.Stop()
	b.ReportAllocs()
	for b.Loop() {
		m.Now()
	}
}
