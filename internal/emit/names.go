package emit

import (
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/nearest"
	"github.com/stallspan/stallspan/semconv"
)

// CheckMetric says that there is no metric of that name, and which one may have been meant.
func CheckMetric(name string) error {
	var names []string
	for _, m := range semconv.Metrics {
		names = append(names, m.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	if near := nearest.Word(name, names); near != "" {
		return fmt.Errorf("there is no metric %.60q: did you mean %s?", name, near)
	}
	return fmt.Errorf("there is no metric %.60q: docs/metrics.md lists them", name)
}
