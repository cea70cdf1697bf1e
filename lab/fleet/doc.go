// Command fleet sends what many agents send to two gateways, which pass it to one VictoriaMetrics, on this machine. It
// measures what that takes, and what is lost if a gateway restarts or the store is away. hack/fleet.sh builds the
// programs and runs it. docs/internals/results.md has the results, and says what is scaled.
package main
