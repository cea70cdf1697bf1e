package progress

import (
	"regexp"
	"strings"
	"testing"
)

func TestHint(t *testing.T) {
	for _, test := range []struct {
		what, pattern, example string
		lines                  []string
	}{
		{"steps", `iter (\d+)`, "iter 100: loss 4.2", []string{"loading", "iter 100: loss 4.2", "iter 200: loss 4.1"}},
		{"JSON", `"step": (\d+)`, `{"step": 1, "loss": 3}`, []string{`{"step": 1, "loss": 3}`, `{"step": 2, "loss": 2}`}},
		{"the rarer one", `round=(\d+)`, "round=1 step=1",
			[]string{"round=1 step=1", "step=2", "step=3", "round=2 step=1"}},
		{"padded", `step: +(\d+)`, "step:  8 loss 2", []string{"step:  8 loss 2", "step:  9 loss 2", "step: 10 loss 2"}},
		{"a number within a longer word", `\bstep +(\d+)`, "substep 7 step 1",
			[]string{"substep 7 step 1", "substep 7 step 2"}},
		{"a number that stays", "", "", []string{"batch 32", "batch 32"}},
		{"a fraction", "", "", []string{"it 1.5", "it 2.5"}},
		{"bars", `\b0/20\b`, "0%|  | 0/20 [00:00<?]", []string{"  0%|  | 0/20 [00:00<?]", " 50%|# | 10/20 [00:01<00:01]",
			"100%|##| 20/20 [00:02<00:00]", "Validation:   0%|  | 0/5", "  0%|  | 0/20 [00:00<?]", "Validation:   0%|  | 0/5"}},
		{"one bar", "", "", []string{"  0%|  | 0/20 [00:00<?]", "100%|##| 20/20 [00:02<00:00]", "  0%|  | 0/7 [00:00<?]"}},
		{"a bar that is drawn twice at its begin", "", "", []string{"0%|  | 0/20", "0%|  | 0/20", "5%|# | 1/20", "0%|  | 0/20"}},
		{"nothing", "", "", []string{"hello", "world 1", "world 2"}},
	} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range test.lines {
			r.Line(0, []byte(line))
		}
		got := r.Hint()
		if want := (Hint{Lines: len(test.lines), Example: test.example, Pattern: test.pattern,
			Ends: strings.Contains(test.example, "."), Bar: strings.Contains(test.example, "|")}); got != want {
			t.Errorf("%s: got %+v, want %+v", test.what, got, want)
		}
		if got.Pattern != "" && !regexp.MustCompile(got.Pattern).MatchString(got.Example) {
			t.Errorf("%s: the pattern %q does not match %q", test.what, got.Pattern, got.Example)
		}
	}
}
