#!/usr/bin/env bash
# Builds the Python package into a folder: its sdist, without a program, and a wheel around each binary, whose platform
# tools/wheel reads from the binary. Its version is that of hack/version.sh as Python writes it: 1.2.3rc1 for 1.2.3-rc.1.
# It needs Debian's python3-setuptools and python3-wheel, and downloads nothing.
#
#   hack/wheels.sh FOLDER BINARY...
set -euo pipefail
(($# >= 2)) || { echo 'usage: hack/wheels.sh FOLDER BINARY...' >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
shift
binaries=()
for binary; do binaries+=("$(realpath "$binary")"); done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-/usr/bin/python3}
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{tree,unpacked,pure}
cp -r LICENSE python/{pyproject.toml,README.md,src} "$work/tree"
read -r number commit _ < <(hack/version.sh)
version=$(sed -E 's/-dev$/.dev0/; s/-(a|b|rc)[a-z]*\./\1/' <<<"$number")
[[ $number != *-dev ]] || version+=+$commit
sed -i "s/^version = .*/version = \"$version\"/" "$work/tree/pyproject.toml"
sed -i "s/^__version__ = .*/__version__ = \"$version\"/" "$work/tree/src/stallspan/__init__.py"

# call runs a hook of the build backend (PEP 517) in a folder.
call() { (cd "$1" && "$python" -W ignore -c "import setuptools.build_meta as b; b.$2('$3')" >/dev/null); }
call "$work/tree" build_sdist "$work"
# Packed again, without what differs from build to build.
tar -xzf "$work"/stallspan-*.tar.gz -C "$work/unpacked"
name=$(basename "$work"/stallspan-*.tar.gz .tar.gz)
tar --directory "$work/unpacked" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" \
	--owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --format=gnu --create "$name" | gzip --no-name -9 >"$out/$name.tar.gz"
# The wheel is made from the sdist, so nothing is missing there.
call "$work/unpacked/$name" build_wheel "$work/pure"
hack/tool.sh wheel -out "$out" "$work"/pure/*.whl "${binaries[@]}"
