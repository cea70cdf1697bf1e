//go:generate go tool -modfile=../internal/tools/go.mod mdatagen metadata.yaml

// Package processor is the Collector's processor "stallspan": it writes onto spans on their way what this machine's
// history knows about their time.
package processor
