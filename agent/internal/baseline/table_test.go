package baseline

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/state/baseline"
)

// A name that is cut cannot be given to reset, so the whole key follows.
func TestBaselineListOfLongNames(t *testing.T) {
	e := baseline.Entry{Key: "load/ssd/cold//tmp/a folder/models/llama.gguf (97152000 bytes)"}
	e.Durations, e.Slow, e.Last = []time.Duration{time.Second}, 1, time.Now()
	var out bytes.Buffer
	if err := printBaselines(&out, []baseline.Entry{e}, time.Now()); err != nil ||
		!strings.Contains(out.String(), "\n  "+string(e.Key)+"\n") {
		t.Errorf("got %v\n%s, want the key on a line of its own", err, out.String())
	}
	out.Reset()
	if err := showBaselines(&out, []baseline.Entry{e}); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(out.String()), " "), "; 1 slow since") {
		t.Errorf("got %v\n%s, want \"; 1 slow since\"", err, out.String())
	}
}
