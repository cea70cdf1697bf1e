#!/usr/bin/env bash
# Runs a program of the module tools/ in this folder: hack/tool.sh NAME ARGUMENT... tools/go.mod lists them. It builds the
# program where that is not up to date.
set -euo pipefail
program=$(go -C "$(dirname "${BASH_SOURCE[0]}")/../tools" tool -n "$1")
exec "$program" "${@:2}"
