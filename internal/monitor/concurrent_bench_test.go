package monitor

import (
	"testing"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// BenchmarkEnd measures the start and the end of a window with 1,000 others open and 4,096 that ended recently: of one
// that read from no disk, and of a slow load that read from the same disk as the others.
func BenchmarkEnd(b *testing.B) {
	for name, kind := range map[string]window.Kind{"no disk": window.Custom, "load": window.ModelLoad} {
		b.Run(name, func(b *testing.B) {
			s := newStormy(b, "a", "c")
			job, under := "a", []string{"sda"}
			if kind == window.Custom {
				job, under = "", nil
			}
			for range windows.MaxEnded {
				s.pass(1)
				id := s.begin("a", "sda")
				s.pass(2) // shorter ones have no verdict
				s.end(id)
			}
			for range 1000 {
				s.begin("c", "sda")
			}
			w := window.Window{Kind: kind, Model: "m", Job: job, Seen: window.Seen{Under: under}}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				from := s.Now()
				s.pass(2)
				to := s.Now()
				b.StartTimer()
				id, err := s.Windows.Begin(w, from)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Windows.End(id, to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
