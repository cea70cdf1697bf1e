#!/usr/bin/env bash
# Makes the images of the agent and the Collector, with tools/image and files of Debian's packages, without a daemon. It
# needs apt-get, dpkg-deb and Debian's keyring, and downloads the packages into build/image/debs once.
#
#   hack/image.sh FOLDER VERSION TITLE ARCH=BINARY...     TITLE is stallspan or otelcol-stallspan
#
# SOURCE_DATE_EPOCH is the time of all files, by default that of the commit, and REVISION the commit's name.
set -euo pipefail
(($# >= 4)) || { echo 'usage: hack/image.sh FOLDER VERSION TITLE ARCH=BINARY...' >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1") version=$2 title=$3
shift 3
binaries=()
for pair; do binaries+=("${pair%%=*}=$(realpath "${pair#*=}")"); done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $keys ]] || { echo 'no image is made: install the package debian-archive-keyring' >&2; exit 1; }
debs=$PWD/build/image/debs

# fetch downloads the packages for an architecture from this machine's sources, with lists of its own: its apt stays as
# it is.
fetch() {
	local arch=$1 work
	[[ ! -e $debs/$arch ]] || return 0
	work=$(mktemp -d)
	mkdir -p "$work"/{lists/partial,cache/archives/partial,debs,none}
	# shellcheck disable=SC2016 # apt-get expands them
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' | sort -u |
		sed -nE "s|^(.*) (bookworm(-[a-z]+)?) main\$|deb [signed-by=$keys] \1 \2 main|p" >"$work/sources"
	[[ -s $work/sources ]] || { echo 'no image is made: apt-get has no source of Debian 12' >&2; exit 1; }
	: >"$work/status"
	local apt=(apt-get -qq -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o "Dir::State::status=$work/status"
		-o "Dir::Etc::sourcelist=$work/sources" -o "Dir::Etc::sourceparts=$work/none"
		-o Dir::Etc::preferences=/dev/null -o "Dir::Etc::preferencesparts=$work/none"
		-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o APT::Sandbox::User=)
	"${apt[@]}" update
	(cd "$work/debs" && "${apt[@]}" download libc6 ca-certificates base-files)
	mkdir -p "$debs"
	mv "$work/debs" "$debs/$arch"
	rm -rf "$work"
}
for pair in "${binaries[@]}"; do fetch "${pair%%=*}"; done
hack/tool.sh image -debs "$debs" -out "$out" -title "$title" -version "$version" \
	-revision "${REVISION-$(git rev-parse HEAD 2>/dev/null || true)}" \
	-created "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" "${binaries[@]}"
