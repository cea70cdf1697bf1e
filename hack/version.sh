#!/usr/bin/env bash
# Prints what hack/dist.sh stamps into binaries and packages: the version, the short commit, and the commit's time, which
# is every file's time. VERSION=1.2.3 makes a release; the default is the number in agent/internal/version/version.go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
number=${VERSION:-$(sed -n 's/^\tversionNumber = "\(.*\)"$/\1/p' agent/internal/version/version.go)}
if [[ ! $number =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$ ]]; then
	echo "the version is \"$number\": want a number such as 1.2.3 or 1.2.3-rc.1, without a v" >&2
	exit 1
fi
commit=$(git rev-parse --short=12 HEAD)
[[ -z $(git status --porcelain --untracked-files=no) ]] || commit+=.dirty
echo "$number $commit $(git log -1 --format=%ct)"
