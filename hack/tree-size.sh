#!/usr/bin/env bash
# Prints how large the tree is: the figures of docs/internals/tidy.md. It works on any checkout that it is started in.
set -euo pipefail
module=$(go list -m)

# lines counts the Go lines of packages, without tests.
lines() {
	go list -f '{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .CgoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .IgnoredGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}' "$@" |
		grep -v '_test\.go$' | sort -u | xargs cat | wc -l
}

# product lists the packages of this module that the program, the receiver or the processor import.
product=$(go list -deps . ./receiver ./processor | grep "^$module" | sort -u)

# shellcheck disable=SC2086 # a list of packages
printf '%-52s %s\n' 'Go lines that reach the program or the components' "$(lines $product)"
printf '%-52s %s\n' 'folders directly under internal' "$(find internal -mindepth 2 -maxdepth 3 -name '*.go' | cut -d/ -f2 | sort -u | wc -l)"
printf '%-52s %s\n' 'methods of the largest type' "$(
	for package in $product; do
		folder=${package#"$module"}
		find ".${folder:-/}" -maxdepth 1 -name '*.go' ! -name '*_test.go' -print0 |
			xargs -0 -r sed -nE 's/^func \([a-zA-Z_]* ?\*?([A-Za-z0-9_]+)(\[[^]]*\])?\) .*/\1/p' |
			sort | uniq -c | sort -rn | awk -v p="${folder#/}" 'NR == 1 {print $1, p "." $2}'
	done | sort -rn | head -1
)"
# The page of the Python package stands on its own.
printf '%-52s %s\n' 'words of the pages for users' "$(
	git ls-files '*.md' | grep -vE '^(CHANGELOG|CONTRIBUTING|SECURITY)\.md$|^\.github/|^docs/(internals|adr)/|^docs/(design|accuracy|performance)\.md$|^testdata/|^hack/|^python/' |
		xargs cat | wc -w
)"
