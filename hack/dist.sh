#!/usr/bin/env bash
# Builds what a release consists of into dist/, for two architectures: archives, packages, wheels, images, the Helm chart,
# lists of what is in the binaries (SBOM), and SHA256SUMS. The same commit, Go, C compiler and packages of Debian give the
# same bytes in any folder, except for the SBOMs. It needs gcc and, for the other architecture, Debian's
# gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu.
# VERSION=1.2.3 makes a release. ARCHITECTURES=amd64 builds for one, and SBOM=no leaves the lists out.
#
#   hack/dist.sh [deb|wheel]     only the agent's Debian package, or only the wheel, for this machine's architecture
set -euo pipefail
only=${1:-}
[[ $# -le 1 && $only =~ ^(deb|wheel)?$ ]] || { echo 'usage: hack/dist.sh [deb|wheel]' >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -r number commit epoch < <(hack/version.sh)
version=$number
[[ $number != *-* ]] || version=$number+$commit
out=$PWD/dist
work=build/dist
read -ra architectures <<<"${ARCHITECTURES:-amd64 arm64}"
[[ -z $only ]] || architectures=("$(go env GOHOSTARCH)")

# None of the caller's flags may reach a binary.
export GOFLAGS=-buildvcs=false CGO_ENABLED=1 CGO_CFLAGS='-O2 -g -Wno-deprecated-declarations' CGO_CPPFLAGS='' CGO_LDFLAGS=''
export GOAMD64=v1 GOARM64=v8.0 SOURCE_DATE_EPOCH=$epoch TZ=UTC LC_ALL=C

# compiler prints the C compiler for an architecture.
compiler() {
	local cc=gcc
	if [[ $1 != "$(go env GOHOSTARCH)" ]]; then
		case $1 in
		amd64) cc=x86_64-linux-gnu-gcc ;;
		arm64) cc=aarch64-linux-gnu-gcc ;;
		esac
	fi
	command -v "$cc" >/dev/null || {
		echo "$cc is missing, which compiles for $1: install Debian's gcc-${cc%-gcc}" >&2
		exit 1
	}
	echo "$cc"
}

# compile builds the package in a folder for an architecture, without symbols and without paths. What needs no C library
# has fixed addresses: a position-independent program has a loader, which is that of glibc.
compile() {
	local arch=$1 folder=$2 output=$3 flags=${4:-} mode=pie
	[[ $CGO_ENABLED == 1 ]] || mode=exe
	GOOS=linux GOARCH=$arch CC=$(compiler "$arch") go build -C "$folder" -trimpath -buildmode=$mode -tags grpcnotrace \
		-ldflags "-s -w $flags" -o "$output" .
}

# oldest fails if a binary needs a newer C library than the packages say.
oldest() {
	local needs
	needs=$(readelf --version-info --wide "$1" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)
	[[ $(printf '%s\n' "$needs" GLIBC_2.34 | sort -V | tail -1) == GLIBC_2.34 ]] || {
		echo "$1 needs $needs, want at most GLIBC_2.34 as in packaging: build it on Debian 12" >&2
		exit 1
	}
}

# archive packs a folder below build/dist. Names, times and owners are the same everywhere.
archive() {
	tar --directory "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
		--format=gnu --create "$1" | gzip --no-name -9 >"$out/$1.tar.gz"
}

# package runs nfpm for a format, a config and an architecture. The version 1.2.3-rc.1 is 1.2.3~rc.1 there.
package() {
	PACKAGE_VERSION=$version PACKAGE_ARCH=$3 PACKAGE_MANUAL=$work/manual \
		hack/tool.sh nfpm package --packager "$1" --config "$2" --target "$out" >/dev/null
}

# wheels builds the Python package around the programs that follow.
wheels() {
	if "${PYTHON:-/usr/bin/python3}" -c 'import setuptools, wheel' 2>/dev/null; then
		hack/wheels.sh "$out" "$@"
	else
		echo 'no wheels: python3-setuptools or python3-wheel is missing' >&2
		[[ -z $only ]]
	fi
}

rm -rf "$work"
case $only in
deb) rm -f "$out"/stallspan_*.deb ;;
wheel) rm -f "$out"/stallspan-*.{whl,tar.gz} ;;
*) rm -rf "$out" ;;
esac
mkdir -p "$work" "$out"

if [[ -z $only ]]; then
	sed -e "s|^  version: .*|  version: $version|" -e "s|^  output_path: .*|  output_path: $work/collector|" \
		builder-config.yaml >"$work/builder-config.yaml"
	hack/tool.sh builder --config "$work/builder-config.yaml" --skip-compilation >"$work/ocb.log" 2>&1 || {
		cat "$work/ocb.log" >&2
		exit 1
	}
fi

module=$(go list -m)
hack/tool.sh manual -o "$work/manual"
gzip --no-name -9 "$work"/manual/man1/*
for package in stallspan otelcol-stallspan; do
	mkdir -p "$work/scripts/$package"
	for script in packaging/scripts/*; do
		sed "s/@NAME@/$package/g" "$script" >"$work/scripts/$package/${script##*/}"
	done
	printf '%s (%s-1) unstable; urgency=medium\n\n  * https://github.com/stallspan/stallspan/blob/main/CHANGELOG.md\n\n -- %s  %s\n' \
		"$package" "${version/-/\~}" "$(sed -n 's/^maintainer: //p' packaging/agent.nfpm.yaml)" "$(date -Rd "@$epoch")" |
		gzip --no-name -9 >"$work/scripts/$package/changelog.gz"
done

binaries=()
for arch in "${architectures[@]}"; do
	stamp="-X $module/agent/internal/version.versionNumber=$number -X $module/agent/internal/version.versionCommit=$commit"
	agent=stallspan_${version}_linux_$arch
	mkdir "$work/$agent" "$work/$agent-static"
	compile "$arch" . "$PWD/$work/$agent/stallspan" "$stamp"
	oldest "$work/$agent/stallspan"
	if [[ $only == deb ]]; then
		PACKAGE_FILES=$work/$agent package deb packaging/agent.nfpm.yaml "$arch"
		ls "$out"/stallspan_*.deb
		exit
	fi
	if [[ $only == wheel ]]; then
		wheels "$work/$agent/stallspan"
		exit
	fi
	# Without GPUs and without a C library: for Linux that is older than this glibc, or has another.
	CGO_ENABLED=0 compile "$arch" . "$PWD/$work/$agent-static/stallspan" "$stamp"
	for name in "$agent" "$agent-static"; do
		cp -r LICENSE packaging/stallspan.service "$work/manual" "$work/$name"
		mkdir "$work/$name/etc"
		cp packaging/etc/agent.* "$work/$name/etc"
		archive "$name"
		binaries+=("$work/$name/stallspan")
	done

	collector=otelcol-stallspan_${version}_linux_$arch
	mkdir "$work/$collector"
	compile "$arch" "$work/collector" "$PWD/$work/$collector/otelcol-stallspan"
	oldest "$work/$collector/otelcol-stallspan"
	cp -r LICENSE packaging/otelcol-stallspan.service examples/collector "$work/$collector"
	mkdir "$work/$collector/etc"
	cp packaging/etc/collector.* "$work/$collector/etc"
	archive "$collector"

	for format in deb rpm; do
		PACKAGE_FILES=$work/$agent package "$format" packaging/agent.nfpm.yaml "$arch"
		PACKAGE_FILES=$work/$collector package "$format" packaging/collector.nfpm.yaml "$arch"
	done
done

wheels "${binaries[@]}"

# Both architectures in one file, which containerd, podman and docker load.
if [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]]; then
	for program in stallspan otelcol-stallspan; do
		pairs=()
		for arch in "${architectures[@]}"; do pairs+=("$arch=$work/${program}_${version}_linux_$arch/$program"); done
		hack/image.sh "$work/images" "$number" "$program" "${pairs[@]}"
		mv "$work/images/$program.oci.tar" "$out/${program}_${version}_oci.tar"
	done
else
	echo 'no images: debian-archive-keyring is missing' >&2
fi

hack/chart.sh "$out" "$version" "$number"

# The file name of each binary's lists is that of its archive.
if [[ ${SBOM:-} != no ]]; then
	for folder in "$work"/*_linux_*; do
		name=${folder##*/}
		file=$folder/${name%%_*}
		SYFT_CHECK_FOR_APP_UPDATE=false hack/tool.sh syft scan --quiet "file:$file" --source-name "${name%%_*}" \
			--source-version "$version" --output "spdx-json=$out/$name.spdx.json" --output "cyclonedx-json=$out/$name.cdx.json"
	done
fi

(cd "$out" && sha256sum -- * >"../$work/SHA256SUMS" && mv "../$work/SHA256SUMS" .)
cat "$out/SHA256SUMS"
