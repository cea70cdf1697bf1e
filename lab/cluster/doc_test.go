// Package cluster tests the Helm chart in a real cluster of one node, with real pods. `make cluster` starts the cluster
// and runs the tests; without STALLSPAN_CLUSTER they are skipped.
package cluster
