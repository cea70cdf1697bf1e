#!/usr/bin/env bash
# Sends what a fleet of agents sends to two gateways and one VictoriaMetrics on this machine, and measures it: lab/fleet and
# docs/internals/benches.md. `make fleet` builds the Collector before.
#
#   hack/fleet.sh --short    20 agents; a minute. It fails if anything is lost that no counter has.
#   hack/fleet.sh            1,000 agents, and 100 with a store that is away for ten minutes; half an hour, and 10 GB of disk
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BACKENDS=build/backends hack/backends.sh --build victoria-metrics
mkdir -p build/fleet
go -C lab build -o ../build/fleet-run ./fleet
trap 'rm -rf build/fleet/store build/fleet/gateway-?' EXIT

if [[ ${1:-} == --short ]]; then
	build/fleet-run -agents 20 -intervals 24 -away 6 -back 12 -kill 16 -restart 20
	exit
fi
printf '\n== the store is away for ten minutes, and both gateways restart\n'
build/fleet-run -agents 100 -intervals 120 -restart 15 -away 30 -back 90 -kill 105
printf '\n== 1,000 agents\n'
build/fleet-run -agents 1000 -intervals 8
