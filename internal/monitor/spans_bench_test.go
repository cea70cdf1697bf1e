package monitor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// machine is a monitor that has seen ten minutes of a machine with so many disks and GPUs, all of them at work.
func machine(b *testing.B, disks, gpus int) *Monitor {
	b.Helper()
	m, err := New(Config{Recorded: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Stop)
	feed := func(e *recording.Entry) {
		if err := m.Feed(e); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 6000 {
		spent := time.Duration(i) * 100 * time.Millisecond
		at := sample.Stamp{Mono: time.Hour + spent, Wall: dawn.Add(spent)}
		n := uint64(i)
		waited := spent / 2
		if i%20 < 10 {
			waited = spent/2 + time.Duration(i%10)*30*time.Millisecond
		}
		all := []*sample.Sample{
			{At: at, Pressures: []sample.Pressure{{Resource: sample.IO, Some: waited, Full: waited / 2}}},
			{At: at, Cores: []sample.Core{{Name: "cpu0", User: spent / 3}}},
			{At: at},
			{At: at},
		}
		for d := range disks {
			all[2].Disks = append(all[2].Disks, sample.Disk{Name: "nvme" + strconv.Itoa(d) + "n1", Leaf: true,
				ReadIOs: n, ReadBytes: n << 20, ReadTicks: spent / 2,
				WriteIOs: n, WriteBytes: n, WriteTicks: spent, TimeInQueue: spent / 2})
		}
		for g := range gpus {
			all[3].GPUs = append(all[3].GPUs, sample.GPU{ID: "GPU-" + strconv.Itoa(g), Busy: spent - waited})
		}
		for _, s := range all {
			feed(&recording.Entry{Source: "some", Sample: s})
		}
		feed(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}})
	}
	return m
}

func BenchmarkSpan(b *testing.B) {
	for _, size := range []struct{ disks, gpus int }{{2, 0}, {2, 1}, {10, 8}} {
		m := machine(b, size.disks, size.gpus)
		for _, length := range []time.Duration{time.Second, 30 * time.Second, 9 * time.Minute} {
			name := strconv.Itoa(size.disks) + " disks, " + strconv.Itoa(size.gpus) + " GPUs, " + length.String()
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				w := window.Window{Kind: window.Epoch}
				w.Start.Wall = dawn.Add(10*time.Second + 30*time.Millisecond)
				w.End.Wall = w.Start.Wall.Add(length)
				for b.Loop() {
					if err := m.Spans.Place(&w); err != nil {
						b.Fatal(err)
					}
					m.Spans.Report(w)
				}
			})
		}
	}
}
