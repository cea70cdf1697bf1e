// Package receiver is a Collector receiver for the metrics of one machine. For windows that programs on it announce, it
// makes spans and log records.
//
// It changes no global state, because it runs in a Collector with other components.
package receiver
