package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestStepsOfEpochs: epochs have steps, where these are known.
func TestStepsOfEpochs(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	known := &ledger.Steps{Period: time.Second, Count: 9}
	tests := map[string]struct {
		kind  Kind
		steps *ledger.Steps
		want  bool
	}{
		"an epoch":             {Epoch, known, true},
		"one without evidence": {Epoch, nil, false},
		"a load":               {ModelLoad, known, false},
	}
	for name, test := range tests {
		w := Window{Kind: test.kind, Start: sample.Stamp{Mono: time.Second},
			End: sample.Stamp{Mono: time.Minute}}
		if r := Make(h, &w, Machine{Steps: test.steps}); (r.Steps != nil) != test.want || test.want && r.Steps.Count != 9 {
			t.Errorf("%s: got steps %+v", name, r.Steps)
		}
	}
}
