package baseline

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

// A name that is cut cannot be given to reset, so the whole key follows.
func TestBaselineListOfLongNames(t *testing.T) {
	e := baseline.Entry{Key: "load/ssd/cold//tmp/a folder/models/llama.gguf (97152000 bytes)"}
	e.Durations, e.Slow, e.Last = []time.Duration{time.Second}, 1, time.Now()
	var out bytes.Buffer
	drawBaselines(output.NewTable(&out), []baseline.Entry{e}, time.Now())
	if !strings.Contains(out.String(), "\n  "+string(e.Key)+"\n") {
		t.Errorf("got\n%s, want the key on a line of its own", out.String())
	}
}
