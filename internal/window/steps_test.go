package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestStepsOfEpochs: epochs have steps, of their first GPU, where these are known.
func TestStepsOfEpochs(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Steps: func(gpu string) (ledger.Steps, bool) {
		return ledger.Steps{Period: time.Second, Count: 9}, gpu == "a"
	}}
	tests := map[string]struct {
		kind Kind
		gpus []string
		want bool
	}{
		"an epoch":             {Epoch, []string{"a", "b"}, true},
		"one without evidence": {Epoch, nil, false},
		"a load":               {ModelLoad, []string{"a"}, false},
	}
	for name, test := range tests {
		w := Window{Kind: test.kind, GPUs: test.gpus, Start: sample.Stamp{Mono: time.Second},
			End: sample.Stamp{Mono: time.Minute}}
		if r := Make(h, &w, m); (r.Steps != nil) != test.want || test.want && r.Steps.Count != 9 {
			t.Errorf("%s: got steps %+v", name, r.Steps)
		}
	}
}
