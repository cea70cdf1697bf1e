#!/usr/bin/env bash
# Packs the Helm chart for a release, with the helm that `make chart` tests it with. helm writes the time of the day into
# the archive, so its files are packed again: the same commit gives the same bytes.
#
#   hack/chart.sh FOLDER VERSION IMAGES     VERSION is the chart's, IMAGES the tag of its images
#
# SOURCE_DATE_EPOCH is the time of all files, by default that of the commit.
set -euo pipefail
(($# == 3)) || { echo 'usage: hack/chart.sh FOLDER VERSION IMAGES' >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r deploy/helm/stallspan "$work/chart"
prerelease=$([[ $3 == *-* ]] && echo true || echo false)
sed -i -E "s|(image: \"stallspan/[a-z-]+:)[^\"]*|\1$3|; s|(prerelease: )\"[a-z]*\".*|\1\"$prerelease\"|" "$work/chart/Chart.yaml"
hack/tool.sh helm package "$work/chart" --version "$2" --app-version "$3" --destination "$work" >/dev/null
tar -xzf "$work/stallspan-$2.tgz" -C "$work"
tar --directory "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	--format=gnu --create stallspan | gzip --no-name -9 >"$out/stallspan-$2.tgz"
hack/tool.sh helm lint --quiet --set export.endpoint=backend:4317 "$out/stallspan-$2.tgz" >&2
