// Package collector tests the Collector that `make collector` builds, as a process, with the configs of
// examples/collector, a real disk and a real database. `make end-to-end` builds them and runs the tests. Without
// STALLSPAN_END_TO_END they are skipped.
package collector
