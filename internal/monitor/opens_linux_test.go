package monitor

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/window"
)

// A job that is followed for longer than jobs are looked at often reads a model in less time than there is between two
// looks. Its load has the length of the open.
func TestShortLoadOfAnOldJob(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if err := opens.Supported(""); err != nil {
		t.Skip(err)
	}
	model := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(model, make([]byte, 16*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	var got reports
	m := watching(t, Config{Detect: true, Schedule: true, Reports: got.add})
	taker(m)
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	time.Sleep(31 * time.Second)
	begin := m.Now().At.Mono
	weights, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	end := m.Now().At.Mono
	for i := 0; len(got.of(window.ModelLoad)) == 0; i++ {
		if i > 1500 {
			t.Fatalf("got no load, want the one of %v", end-begin)
		}
		time.Sleep(10 * time.Millisecond)
	}
	runtime.KeepAlive(weights)
	r := got.of(window.ModelLoad)[0]
	if from, to := r.Start.Mono, r.Start.Mono+r.Duration(); r.Path != model || from < begin || to > end || from >= to {
		t.Errorf("got a load of %s from %v to %v, want one of %s within %v to %v", r.Path, from, to, model, begin, end)
	}
	t.Logf("a load of %v, open for less than %v", r.Duration(), end-begin)
}
