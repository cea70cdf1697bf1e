//go:build !linux || !(amd64 || arm64)

package helper

import "github.com/stallspan/stallspan/internal/trust"

// Separate does nothing: the agent keeps its capabilities.
func Separate(trust.Set) error { return nil }

// Inherit returns nil.
func Inherit() (*Client, error) { return nil, nil }
