// Package receiver is the door into a Collector: a receiver that gives the metrics of one machine, and spans and log
// records for the windows that programs on it announce.
//
// It sets nothing that is the whole process's, as it lives in somebody's Collector.
package receiver

//go:generate go tool -modfile=../internal/tools/go.mod mdatagen metadata.yaml
