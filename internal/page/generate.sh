#!/bin/sh
# Builds dist/page.js and dist/page.css from web, with the versions of web/package-lock.json. It needs npm and its registry.
set -eu
if ! command -v npm >/dev/null; then
	echo "internal/page: keeping dist as it is. To build it, install nodejs and npm" >&2
	exit 0
fi
cd web
# The lock file names no registry, so npm asks the one that is configured.
npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2
npm run --silent check >&2
npm run --silent build >&2
