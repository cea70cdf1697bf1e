//go:build linux && cgo

package gpu

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// fakeLibrary builds the fake library once. A process can load one NVML library only.
func fakeLibrary(t testing.TB) string {
	t.Helper()
	if fakeLibraryPath == "" {
		folder, err := os.MkdirTemp("", "fakenvml")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if fakeLibraryPath == "" { // the build failed
				_ = os.RemoveAll(folder)
			}
		}()
		fakeLibraryPath = fixture.BuildNVML(t, folder)
	}
	return fakeLibraryPath
}

// playText makes the fake library in this process play a text.
func playText(t testing.TB, text string) *fixture.Player {
	w := fixture.PlayGPU(t, text)
	t.Setenv("FAKENVML_FILE", w.Path)
	return w
}

// recorder is a sink that keeps rows and errors.
type recorder struct {
	mu   sync.Mutex
	rows []sample.Sample
	errs []error
}

func (k *recorder) sink(_ string, s *sample.Sample, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(s.GPUs) > 0 {
		row := *s
		row.GPUs, row.GPUProcesses = slices.Clone(s.GPUs), slices.Clone(s.GPUProcesses)
		row.GPUDetails = slices.Clone(s.GPUDetails)
		k.rows = append(k.rows, row)
	}
	if err != nil {
		k.errs = append(k.errs, err)
	}
}

func (k *recorder) last() (sample.Sample, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.rows) == 0 {
		return sample.Sample{}, false
	}
	return k.rows[len(k.rows)-1], true
}

func (k *recorder) errorText() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprint(k.errs)
}

// runFake runs a source on the fake library until the test ends.
func runFake(t testing.TB) (*Source, *recorder, func()) { t.Helper(); return runFakeOn(t, "") }

// runFakeOn runs a source on the fake library, of a machine with a root.
func runFakeOn(t testing.TB, root string) (*Source, *recorder, func()) {
	t.Helper()
	s := New(Options{Library: fakeLibrary(t), Root: root})
	k := &recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { s.Run(ctx, k.sink) })
	stop := sync.OnceFunc(func() { cancel(); ran.Wait() })
	t.Cleanup(stop)
	return s, k, stop
}

// until waits for a condition, for longer than it takes on a machine with much other work.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 90*time.Second {
			t.Fatalf("got no success within 90 s, want %s", what)
		}
	}
}

// measured repeats a measurement that found a problem: where other programs take the CPUs, the stand-in plays late and
// its values are read late. One good measurement of five is enough.
func measured(t *testing.T, measure func() (problem string)) {
	t.Helper()
	const tries = 5
	for try := 1; ; try++ {
		problem := measure()
		if problem == "" {
			return
		}
		if try == tries {
			t.Errorf("in each of %d measurements; in the last one: got %s", tries, problem)
			return
		}
		t.Logf("measurement %d: got %s", try, problem)
	}
}

// check checks what holds for every stream: time increases, and Busy grows no faster than time.
func (k *recorder) check(t testing.TB) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := 1; i < len(k.rows); i++ {
		a, b := k.rows[i-1], k.rows[i]
		step := b.At.Mono - a.At.Mono
		if step <= 0 || !b.At.Wall.After(a.At.Wall) {
			t.Fatalf("row %d: got time %v after %v", i, b.At, a.At)
		}
		for _, g := range b.GPUs {
			j := slices.IndexFunc(a.GPUs, func(before sample.GPU) bool { return before.ID == g.ID })
			if j >= 0 && (g.Busy < a.GPUs[j].Busy || g.Busy-a.GPUs[j].Busy > step) {
				t.Fatalf("row %d: got %s busy for %v in %v", i, g.ID, g.Busy-a.GPUs[j].Busy, step)
			}
		}
	}
}

func TestDefaultGPU(t *testing.T) {
	measured(t, func() string { return defaultGPU(t) })
}

// defaultGPU checks what the stand-in plays without a file, and returns how its busy share differs.
func defaultGPU(t *testing.T) (problem string) {
	t.Helper()
	t.Setenv("FAKENVML_FILE", "")
	s, k, stop := runFake(t)
	until(t, "a busy row", func() bool {
		row, ok := k.last()
		return ok && row.GPUs[0].Busy > 200*time.Millisecond
	})
	s.CatchUp(t.Context())
	row, _ := k.last()
	if behind := sample.Now().Mono - row.At.Mono; behind > 2*time.Second {
		t.Errorf("got a lag of %v after CatchUp, want at most 2s", behind)
	}
	stop()
	k.check(t)
	g := row.GPUs[0]
	const want = sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy | sample.HasLink |
		sample.HasLinkMax
	if len(row.GPUs) != 1 || g.Name != "NVIDIA Fake 100" || !strings.HasPrefix(g.ID, "GPU-") || g.Driver != "999.00" {
		t.Errorf("got %+v, want one NVIDIA Fake 100 of driver 999.00", row.GPUs)
	}
	if g.Has != want || g.MemoryTotal != 80<<30 || g.LinkWidthMax != 16 || g.LinkGenerationMax != 5 ||
		math.Abs(g.Power-250) > 25 || g.Energy <= 0 {
		t.Errorf("got %+v, want all gauges, 80 GiB, a PCIe link 5.0 x16, about 250 W and energy", g)
	}
	if k.errs != nil {
		t.Errorf("got errors %v, want none", k.errs)
	}
	first := slices.IndexFunc(k.rows, func(r sample.Sample) bool { return r.GPUs[0].Busy > 0 })
	grew := float64(row.GPUs[0].Busy-k.rows[first].GPUs[0].Busy) / float64(row.At.Mono-k.rows[first].At.Mono)
	if math.Abs(grew-0.5) > 0.1 { // one of six samples a second more or less
		problem = fmt.Sprintf("busy %v of the time, want 0.5", grew)
	}
	return problem
}
