#!/usr/bin/env bash
# Builds what `make dist` built once more, from a clone in another folder, and compares the bytes. COLD=yes does it with
# an empty cache, which takes as long as the first time. Then it starts the arm64 programs under qemu, and compares what
# they make of recordings with what the amd64 program makes of them. It needs Debian's qemu-user-static and
# libc6-dev-arm64-cross.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -e dist/SHA256SUMS ]] || { echo 'nothing to compare with: run make dist first' >&2; exit 1; }
read -r number commit _ < <(hack/version.sh)
version=$number
[[ $number != *-* ]] || version=$number+$commit
[[ $commit != *.dirty ]] || { echo 'the checkout has changes: commit them, and run make dist again' >&2; exit 1; }
[[ -e dist/stallspan_${version}_linux_amd64.tar.gz ]] || { echo "dist/ is not of $version: run make dist again" >&2; exit 1; }
(cd dist && sha256sum --quiet --check SHA256SUMS)

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
git clone --quiet --no-hardlinks . "$work/another folder"
[[ ${COLD:-} != yes ]] || export GOCACHE=$work/cache
(umask 077 && VERSION=$number SBOM=no "$work/another folder/hack/dist.sh" >/dev/null)
# SBOMs have random numbers and the time.
sums() { sort -k 2 "$1" | grep -vE '\.(spdx|cdx)\.json$'; }
diff <(sums dist/SHA256SUMS) <(sums "$work/another folder/dist/SHA256SUMS") >&2 || {
	echo 'dist: got other bytes in another folder, want the same' >&2
	exit 1
}
echo "dist: $(sums dist/SHA256SUMS | wc -l) files have the same bytes when built in another folder"

# program unpacks an archive and prints the path of its program.
program() {
	tar -xzf "dist/$1_${version}_linux_$2.tar.gz" -C "$work"
	echo "$work/$1_${version}_linux_$2/$1"
}
host=$(go env GOHOSTARCH)
# run starts a program, if it is not for this machine under qemu.
run() {
	local arch=$1
	shift
	case $arch in
	"$host") "$@" ;;
	arm64) qemu-aarch64-static -L /usr/aarch64-linux-gnu "$@" ;;
	amd64) qemu-x86_64-static -L /usr/x86_64-linux-gnu "$@" ;;
	esac
}
recordings=(testdata/recordings/*.gz)
for arch in amd64 arm64; do
	agent=$(program stallspan "$arch")
	collector=$(program otelcol-stallspan "$arch")
	got=$(run "$arch" "$agent" --version)
	[[ $got == "stallspan version $number (commit $commit, "*"linux/$arch)" ]] || { echo "got $got" >&2; exit 1; }
	got=$(run "$arch" "$collector" --version)
	[[ $got == "otelcol-stallspan version $version" ]] || { echo "got $got" >&2; exit 1; }
	run "$arch" "$collector" components | grep -q 'name: stallspan'
	for recording in "${recordings[@]}"; do
		run "$arch" "$agent" replay "$recording" >>"$work/replay.$arch" 2>&1
	done
done
cmp "$work/replay.amd64" "$work/replay.arm64"
echo "dist: amd64 and arm64 programs of $version start, and make the same of ${#recordings[@]} recordings"
