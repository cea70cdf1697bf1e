package detect_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

// page has the precision of each kind, as measured.
const page = "../../docs/internals/results.md"

// enough is the precision from which on baselines may learn.
const enough = 0.95

// Baselines learn from detected windows of a kind only if the page has the precision for it, in the table of cases that
// are held out.
func TestPreciseIsMeasured(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "<!-- detect held out")
	if !found {
		t.Fatalf("%s has no table of cases that are held out", page)
	}
	table, _, _ = strings.Cut(table, "<!-- end of detect held out")
	var kinds, precision []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) < 3:
		case strings.TrimSpace(cells[1]) == "figure" && kinds == nil:
			kinds = cells
		case strings.TrimSpace(cells[1]) == "precision":
			precision = cells
		}
	}
	of := func(kind string) float64 {
		i := slices.IndexFunc(kinds, func(cell string) bool { return strings.TrimSpace(cell) == kind })
		if i < 0 || i >= len(precision) {
			return 0
		}
		got, _ := strconv.ParseFloat(strings.TrimSpace(precision[i]), 64) // "-" for none
		return got
	}
	for _, kind := range window.KindNames() {
		if got := of(kind); detect.Precise(window.Kind(kind)) && got < enough {
			t.Errorf("%s: got the precision %.2f, want %.2f for a kind that is precise", kind, got, enough)
		}
	}
	if of(string(window.ModelLoad)) == 0 {
		t.Errorf("%s has no precision of loads", page)
	}
}
