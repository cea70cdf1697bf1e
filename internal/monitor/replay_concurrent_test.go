package monitor

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/window"
)

// Windows that begin and end at the same time, while the machine is sampled, replay with the reports that they had.
func TestReplayOfConcurrentWindows(t *testing.T) {
	p := newTape(t)
	var mu sync.Mutex
	m, err := New(Config{Journal: p.w, Interval: 10 * time.Millisecond, Reports: func(r *window.Report) {
		mu.Lock()
		defer mu.Unlock()
		p.add(r)
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	m.OnEvent(func(alert.Event) {})
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			kinds := []window.Kind{window.Epoch, window.ModelLoad, window.Custom}
			for k := range 12 {
				w := window.Window{Kind: kinds[(i+k)%3], Job: "job"}
				if w.Kind == window.ModelLoad {
					w.Path = path
				}
				id, err := m.Windows.Begin(w, m.Now())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = os.ReadFile(path)
				time.Sleep(time.Duration(i*k%7) * time.Millisecond)
				m.Windows.Running()
				switch k % 4 {
				case 0:
					m.Windows.Drop(id)
				case 1:
					_, err = m.Windows.Cut(id, m.Now(), window.Outcome{Unfinished: true})
				default:
					_, err = m.Windows.End(id, m.Now())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	m.Jobs.Unfollow("job")
	m.Stop()
	p.replaysTheSame()
	if len(p.was) != 8*9 {
		t.Errorf("got %d reports, want %d", len(p.was), 8*9)
	}
}
