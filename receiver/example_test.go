//go:build linux && (amd64 || arm64)

package receiver_test

import (
	"fmt"

	"github.com/stallspan/stallspan/receiver"
)

// A Collector that is not built with ocb registers the factory by itself.
func ExampleNewFactory() {
	factory := receiver.NewFactory()
	fmt.Println(factory.Type(), factory.MetricsStability(), factory.TracesStability())
	// Output: stallspan Alpha Alpha
}
