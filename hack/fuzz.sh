#!/usr/bin/env bash
# Runs every fuzz target, from its stored inputs on: hack/fuzz.sh --each SECONDS [PACKAGE...] gives each target so long,
# --total SECONDS divides the time by the targets. Building is not in it. New inputs are kept in Go's cache. An input that
# fails is stored in testdata/fuzz of its package: commit it with the fix. build/fuzz-found names its
# target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: hack/fuzz.sh --each SECONDS | --total SECONDS [PACKAGE...]" >&2; exit 2; }

how=${1-} seconds=${2-}
[[ $how =~ ^--(each|total)$ && $seconds =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage
shift 2

# A line for each package: its folder and its targets. lab and tools are modules of their own.
targets() {
	grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' "${@:-.}" |
		sed -E 's|^(\./)?(.*)/[^/]*:func (.*)$|\2 \3|' | sort -u |
		awk '$1 != last { if (last != "") print line; last = $1; line = $1 } { line = line " " $2 } END { if (last != "") print line }'
}

list=$(targets "$@")
number=$(wc -w <<<"$list")
number=$((number - $(wc -l <<<"$list")))
[[ $how == --each ]] || seconds=$(awk -v total="$seconds" -v n="$number" 'BEGIN { printf "%.1f", total / n }')
echo "$number targets, $seconds s each"

# On a busy machine Go may take the end of the time for a failure. A real one has an input or a stack.
late() {
	! grep -q 'Failing input\|goroutine\|panic' "$programs/output" && grep -q '^ *context deadline exceeded' "$programs/output"
}

found() {
	failed=1
	echo "$1" >>build/fuzz-found
}

mkdir -p build
rm -f build/fuzz-found
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
cache=$(go env GOCACHE)/fuzz
failed=0
while read -r folder names; do
	program=$programs/$(tr / - <<<"$folder").test
	package=$(go -C "$folder" list .)
	go -C "$folder" test -c -fuzz . -o "$program" .
	for name in $names; do
		echo "$package $name"
		(cd "$folder" && "$program" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "${seconds}s" \
			-test.fuzzminimizetime 20x -test.fuzzcachedir "$cache/$package") </dev/null 2>&1 |
			tee "$programs/output" || late || found "$package $name"
	done
	rm -f "$program"
done <<<"$list"
exit "$failed"
