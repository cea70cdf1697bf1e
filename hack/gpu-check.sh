#!/usr/bin/env bash
# Checks Stallspan on a real NVIDIA GPU in under eight minutes: its metrics against nvidia-smi, its busy time against
# CUDA events, its cost, and its verdicts on a training run and a model load (docs/internals/benches.md, "On a GPU").
# It needs python3 with PyTorch and build/stallspan. It needs no network and no root, and installs nothing.
#
#	hack/gpu-check.sh                       # build/gpu-check/gpu-check.json, .md and .jsonl.gz
#	hack/gpu-check.sh --parts facts,busy    # some parts alone
#	hack/gpu-check.sh --fake                # without a GPU: what build/fakenvml (make fakenvml) can answer
#	hack/gpu-check.sh --help
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v python3 >/dev/null; then
	echo 'gpu-check: python3 is needed' >&2
	exit 2
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The parts end within 455 s; this limit is for a part that hangs.
exec timeout --kill-after=8 470 python3 "$here/../lab/gpucheck/main.py" "$@"
