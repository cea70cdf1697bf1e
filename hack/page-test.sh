#!/usr/bin/env bash
# Tests the HTML report and the machine's page in Debian's chromium, with Playwright. UPDATE=1 writes the pictures that later runs compare with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
missing=()
command -v npm >/dev/null || missing+=(npm)
[[ -n ${CHROMIUM:-} ]] || command -v chromium >/dev/null || missing+=(chromium)
if ((${#missing[@]})); then
	printf 'skipped: needs %s, to test the page in a browser\n' "${missing[@]}"
	exit 0
fi
mkdir -p build/pages
make -s fakenvml || echo 'skipped: needs gcc, to test the page of a GPU'
go build -tags grpcnotrace -o build/stallspan-page .
TZ=UTC build/stallspan-page replay --html build/pages/gpu.html testdata/recordings/gpu.jsonl.gz >/dev/null
before='' after='' # several runs: compare refuses a file that is given twice
for n in 1 2 3 4; do
	cp testdata/reports/train-disk.json "build/pages/before-$n.json"
	cp testdata/reports/train-memory.json "build/pages/after-$n.json"
	before+="${before:+,}build/pages/before-$n.json" after+="${after:+,}build/pages/after-$n.json"
done
build/stallspan-page compare --before "$before" --after "$after" --html build/pages/compare.html >/dev/null
go -C lab build -o ../build/page-run ./page
build/page-run build/pages
cd lab/page
npm ci --ignore-scripts --no-audit --no-fund --loglevel error
PAGES=../../build/pages npx playwright test ${UPDATE:+--update-snapshots} "$@"
