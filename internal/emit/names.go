package emit

import (
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/semconv"
)

// CheckMetric returns an error if there is no metric of that name.
func CheckMetric(name string) error {
	var names []string
	for _, m := range semconv.Metrics {
		names = append(names, m.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no metric %.60q: stallspan docs metrics lists them", name)
}
