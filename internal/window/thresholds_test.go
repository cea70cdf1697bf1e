package window

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestThresholdsAreDocumented compares the numbers of docs/verdicts.md with the code.
func TestThresholdsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(page)), " ") // a phrase may be broken over two lines
	r := Thresholds
	for _, row := range []string{
		fmt.Sprintf("| `gpu_bound` | busy >= %.2f |", r.Busy),
		fmt.Sprintf("| `unknown` | rest >= %.2f, and at least %g times the largest stall |", r.Other, r.Ratio),
		fmt.Sprintf("| `storage_bound` | storage stall >= %.2f, and at least %g times each other stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `network_bound` | network >= %.2f, and at least %g times each other stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `cpu_bound` | CPU stall >= %.2f, and at least %g times each other stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `mixed` | the largest stall >= %.2f |", r.Stall),
		fmt.Sprintf("received at least %d MiB", Serving.Bytes>>20),
		fmt.Sprintf("at least %g times what it sent", Serving.Ratio),
		fmt.Sprintf("more than %d bytes for each message", Serving.Packet),
		fmt.Sprintf("at least %d KiB for each second of waiting", int(Serving.Rate)>>10),
		fmt.Sprintf("less certain than %.2f", r.Doubt),
		fmt.Sprintf("storage took more than %.2f of its GPU time", r.Slow),
	} {
		if !strings.Contains(words, row) {
			t.Errorf("docs/verdicts.md lacks: %s", row)
		}
	}
}
