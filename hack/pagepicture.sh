#!/usr/bin/env bash
# Draws docs/images/page.png: the page of a machine, live, with a training on a stand-in for a GPU.
# It needs gcc, npm, Python and Debian's chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go build -o build/stallspan .
make --no-print-directory fakenvml
(cd lab/page && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
work=$(mktemp -d -p "$PWD/build") # on a real disk
started=()
trap 'kill "${started[@]}" 2>"$work/kill" || true; wait || true; rm -r "$work"' EXIT

printf 'gpu 0 busy_file=%s/kernels gpm=0 name="Fake 100"\n' "$work" >"$work/gpus"
cat >"$work/config.yaml" <<YAML
socket: $work/s.sock
sampling: {nvml: $PWD/build/fakenvml/libnvidia-ml.so.1}
YAML
FAKENVML_FILE=$work/gpus XDG_STATE_HOME=$work build/stallspan agent --config "$work/config.yaml" 2>"$work/agent.log" &
started+=($!)
until [[ -S $work/s.sock ]]; do sleep 0.2; done
STALLSPAN_SOCKET=$work/s.sock build/stallspan page >"$work/page.log" 2>&1 &
started+=($!)
until address=$(grep -o 'http://127.0.0.1:[0-9]*/[^ ]*' "$work/page.log"); do sleep 0.2; done

export FAKENVML_FILE=$work/gpus LD_LIBRARY_PATH=$PWD/build/fakenvml STALLSPAN_SOCKET=$work/s.sock
build/stallspan run --baseline off --slow-epoch 8s --quiet -- python3 lab/tracepictures/train.py "$work" 4 "$work/kernels" >"$work/run.log"
node lab/tracepictures/page.mjs "$address" docs/images/page.png
ls -l docs/images/page.png
