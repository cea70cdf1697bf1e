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
	r := Thresholds
	for _, row := range []string{
		fmt.Sprintf("| `gpu_bound` | busy >= %.2f |", r.Busy),
		fmt.Sprintf("| `unknown` | other >= %.2f, and at least %g times the larger stall |", r.Other, r.Ratio),
		fmt.Sprintf("| `storage_bound` | storage stall >= %.2f, and at least %g times the CPU stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `cpu_bound` | CPU stall >= %.2f, and at least %g times the storage stall |", r.Stall, r.Ratio),
		fmt.Sprintf("| `mixed` | the larger stall >= %.2f |", r.Stall),
		fmt.Sprintf("less certain than %.2f", r.Doubt),
		fmt.Sprintf("storage took more than %.2f of its GPU time", r.Slow),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/verdicts.md lacks: %s", row)
		}
	}
}
