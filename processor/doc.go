//go:generate ../hack/tool.sh mdatagen metadata.yaml

// Package processor is a Collector processor that annotates spans. From this machine's history of readings, it adds
// what the GPU or the program waited for during the span.
package processor
