//go:build linux && (amd64 || arm64)

package processor_test

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/processor"
)

// A Collector that is not built with ocb registers the factory by itself.
func ExampleNewFactory() {
	factory := processor.NewFactory()
	fmt.Println(factory.Type(), factory.TracesStability())
	// Output: stallspan Alpha
}

// A config with conditions of its own keeps the default ones by naming them, too.
func ExampleDefaultConditions() {
	for _, condition := range processor.DefaultConditions() {
		if strings.Contains(condition, "epoch") {
			fmt.Println("a default condition matches epochs by name")
			break
		}
	}
	// Output: a default condition matches epochs by name
}
