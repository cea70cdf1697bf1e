package monitor

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/gpu"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// card plays an AMD GPU that works 40 % of the time. Without sums, it has an average alone.
func card(t *testing.T, sums bool) (root string) {
	t.Helper()
	root = t.TempDir()
	device := "sys/class/drm/card0/device/"
	fixture.Write(t, root, device+"uevent", []byte("DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:03:00.0\n"))
	fixture.Write(t, root, device+"unique_id", []byte("1\n"))
	fixture.Write(t, root, device+"gpu_busy_percent", []byte("40\n"))
	if !sums {
		return root
	}
	began := time.Now()
	table := func() { // gpu_metrics 1.6
		ms := uint32(time.Since(began).Milliseconds()) + 1000
		b := bytes.Repeat([]byte{0xff}, 1664)
		copy(b, []byte{0x80, 0x06, 1, 6})
		binary.NativeEndian.PutUint32(b[32:], ms)
		binary.NativeEndian.PutUint32(b[68:], ms*40)
		file := filepath.Join(root, device, "gpu_metrics")
		if err := os.WriteFile(file+"~", b, 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Error(err)
		}
	}
	table()
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			table()
		}
	})
	t.Cleanup(func() { cancel(); writer.Wait() })
	return root
}

// A window has the GPU's own sum of activity. An average says the same, and is uncertain.
func TestAMD(t *testing.T) {
	for _, sums := range []bool{true, false} {
		root := card(t, sums)
		m, err := New(Config{Interval: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		m.sources.SetGPUs(gpu.New(gpu.Options{Root: root, Interval: 20 * time.Millisecond}))
		m.Start()
		defer m.Stop()
		m.sources.WaitForGPUs()
		id, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		from := m.sources.Last()
		for late := time.Now().Add(time.Minute); m.sources.Last() < from+3*time.Second && time.Now().Before(late); {
			time.Sleep(20 * time.Millisecond) // until the sampler has read so much
		}
		r, err := m.Windows.End(id, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		near(t, "busy", r.Busy, time.Duration(float64(r.Duration())*.4), doubt(r)+r.Duration()/50)
		if r.Busy+r.Storage+r.CPU+r.Other != r.Duration() {
			t.Errorf("got %+v, want parts that add up to %v", r.Ledger, r.Duration())
		}
		if least := .8 / math.Sqrt(max(1, r.Duration().Seconds())); !sums && r.Uncertainty < min(1, least) {
			t.Errorf("got an uncertainty of %.2f with an average in %v, want %.2f or more", r.Uncertainty, r.Duration(), least)
		}
	}
}
