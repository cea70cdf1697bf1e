//go:build !linux || !(amd64 || arm64)

package helper

import (
	"fmt"
	"os"

	"github.com/stallspan/stallspan/internal/trust"
)

// Main is for other platforms.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "stallspan: the agent has a helper on Linux on amd64 and arm64 only")
	return exitFailed
}

// Separate does nothing: the agent keeps its capabilities.
func Separate(trust.Set) error { return nil }

// Inherit returns nil.
func Inherit() (*Client, error) { return nil, nil }
