#!/bin/sh
# Usage: hack/bpf.sh STEM, in the folder of a package: compiles bpf/STEM.bpf.c for both architectures with Debian's
# clang-16 and the headers of libbpf-dev.
set -eu
missing=
command -v clang-16 >/dev/null || missing="$missing clang-16"
command -v llvm-strip-16 >/dev/null || missing="$missing llvm-16"
[ -e /usr/include/bpf/bpf_helpers.h ] || missing="$missing libbpf-dev"
if [ -n "$missing" ]; then
	echo "$(basename "$PWD"): keeping $1_*_bpfel.o as it is. To compile it, install$missing" >&2
	exit 0
fi
# Debug information of the source's place would make the object differ between checkouts.
exec go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-16 -strip llvm-strip-16 -target amd64,arm64 -tags linux \
	-no-global-types -output-stem "$1" bpf "bpf/$1.bpf.c" -- -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include
