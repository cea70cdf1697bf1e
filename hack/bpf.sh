#!/bin/sh
# Usage: hack/bpf.sh, in the folder of the package: compiles programs/all.bpf.c to bpf_amd64.o and bpf_arm64.o with
# Debian's clang-16 and the headers of libbpf-dev.
set -eu
missing=
command -v clang-16 >/dev/null || missing="$missing clang-16"
command -v llvm-strip-16 >/dev/null || missing="$missing llvm-16"
[ -e /usr/include/bpf/bpf_helpers.h ] || missing="$missing libbpf-dev"
if [ -n "$missing" ]; then
	echo "$(basename "$PWD"): keeping bpf_*.o as they are. To compile them, install$missing" >&2
	exit 0
fi
for target in x86:amd64 arm64:arm64; do
	object=bpf_${target#*:}.o
	# Debug information of the source's place would make the object differ between checkouts.
	clang-16 -O2 -g -mcpu=v3 -Wall -Werror -I/usr/include -D__TARGET_ARCH_"${target%:*}" -target bpfel \
		-fno-ident -fdebug-prefix-map="$PWD=." -fdebug-compilation-dir . -c programs/all.bpf.c -o "$object"
	llvm-strip-16 -g "$object"
done
