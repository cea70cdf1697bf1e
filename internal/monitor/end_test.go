package monitor

import (
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// hanging is a Reader that does not answer while it holds.
type hanging struct {
	process.Reader
	holds   atomic.Bool
	held    chan struct{}
	release chan struct{}
}

func (h *hanging) Bytes(_ []process.Key, into []process.Bytes) error {
	if h.holds.Load() {
		select {
		case h.held <- struct{}{}:
		default:
		}
		<-h.release
	}
	for i := range into {
		into[i] = process.Bytes{}
	}
	return nil
}

// A sampling that hangs is a problem, and keeps neither the end of windows nor that of the monitor.
func TestEndWithASourceThatHangs(t *testing.T) {
	reader := &hanging{Reader: process.NewDirect("/proc"), held: make(chan struct{}, 1), release: make(chan struct{})}
	m, err := New(Config{Reader: reader, Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	hangs := make(chan bool, 8)
	defer m.OnHang(func(is bool) { hangs <- is })()
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	c := m.Windows.NewClient(windows.Options{})
	if _, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "job"}, m.Now()); err != nil {
		t.Fatal(err)
	}
	reader.holds.Store(true)
	<-reader.held
	if is := <-hangs; !is || m.RoundAge() < hungAfter {
		t.Errorf("the last round is %v old, want more than %v", m.RoundAge(), hungAfter)
	}
	isHung := func(err error) bool { return err.Error() == "sampling: "+errHung.Error() }
	if list := m.Problems(); !slices.ContainsFunc(list, isHung) {
		t.Errorf("the problems are %v, want one of the sampling", list)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.End(c)
		m.Stop()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the end waits for the source")
	}
	close(reader.release)
	m.done.Wait()
}
