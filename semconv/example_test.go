package semconv_test

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/semconv"
)

// A program sets these attributes on its span, so that the processor treats it as an epoch.
func Example() {
	span := attribute.NewSet(
		semconv.WindowKindKey.String("epoch"),
		semconv.TrainingRunNameKey.String("train.py"),
		semconv.TrainingEpochIndexKey.Int(3),
	)
	fmt.Println(span.Encoded(attribute.DefaultEncoder()))
	// Output: stallspan.training.epoch.index=3,stallspan.training.run.name=train.py,stallspan.window.kind=epoch
}

// A dashboard generator reads the unit and the kind of a metric.
func ExampleMetric() {
	m := semconv.DiskAwait
	fmt.Println(m.Name, m.Unit, m.Kind == semconv.Gauge)
	// Output: stallspan.disk.await s true
}
