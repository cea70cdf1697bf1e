// Package parity_test compares the two outputs: what the agent's exporters send, and what the receiver writes to pdata,
// is equal to the byte.
package parity_test

import "time"

var booted = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
