// Package distribution holds tests alone: of the Collector that `make collector` builds, as a process of its own, with
// the files of examples/collector, a real disk and a real database. `make end-to-end` builds all of it and runs them;
// without STALLSPAN_END_TO_END they are skipped.
package distribution
