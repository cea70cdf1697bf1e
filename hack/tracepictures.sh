#!/usr/bin/env bash
# Draws docs/images/jaeger-*.png: the spans of a real slow epoch in Jaeger's own page, and an epoch of a program that
# knows nothing of Stallspan, which the Collector's processor annotated.
#
#   JAEGER_UI=FOLDER hack/tracepictures.sh
#
# FOLDER is a build of Jaeger's page, which is not in Jaeger's Go module: jaegertracing/jaeger-ui v2.17.0, npm ci, and
# npx vite build in packages/jaeger-ui, with Node 24. It also needs npm, Python and Debian's chromium, and that no
# Collector sends to 127.0.0.1:14317, as that of laptop.yaml does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ! -f ${JAEGER_UI:?set it to a build of Jaeger\'s page: see the first lines of this script}/index.html ]]; then
	echo "$JAEGER_UI has no index.html: build Jaeger's page there" >&2
	exit 1
fi
BACKENDS=${BACKENDS:-${TMPDIR:-/tmp}/stallspan-backends}
BACKENDS=$BACKENDS hack/backends.sh --build jaeger
go build -o build/stallspan .
make --no-print-directory collector
(cd lab/page && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
work=$(mktemp -d -p "$PWD/build") # on a real disk
cat >"$work/jaeger.yaml" <<YAML
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry:
    metrics: {level: none}
extensions:
  jaeger_storage:
    backends:
      memory: {memory: {max_traces: 100}}
  jaeger_query:
    storage: {traces: memory}
    ui: {assets_path: "$(realpath "$JAEGER_UI")"}
    http: {endpoint: "127.0.0.1:16786"}
    grpc: {endpoint: "127.0.0.1:16785"}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:14317"}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
YAML
"$BACKENDS/jaeger" --config "$work/jaeger.yaml" >"$work/jaeger.log" 2>&1 &
jaeger=$!
trap 'kill "$jaeger"; wait "$jaeger" || true; rm -r "$work"' EXIT
until curl -fs http://127.0.0.1:16786/ >"$work/page"; do
	kill -0 "$jaeger" || { cat "$work/jaeger.log" >&2; exit 1; }
	sleep 0.2
done

OTEL_SERVICE_NAME=trainer OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:14317 build/stallspan run \
	--baseline off --slow-epoch 3s --slow-status error --span-names indexed -- python3 lab/tracepictures/train.py "$work"
# trace SERVICE prints the address of a service's trace, or nothing.
trace() {
	curl -fs "http://127.0.0.1:16786/api/traces?service=$1" |
		sed -n 's|.*"traceID":"\([0-9a-f]*\)".*|http://127.0.0.1:16786/trace/\1|p'
}
node lab/tracepictures/take.mjs "$(trace trainer)" docs/images/jaeger-epoch.png 720 'epoch 1'

cat >"$work/collector.yaml" <<YAML
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:14318"}}}
processors:
  stallspan: {slow: {epoch: 500ms}, slow_status: error}
exporters:
  otlp_grpc: {endpoint: "127.0.0.1:14317", tls: {insecure: true}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [stallspan], exporters: [otlp_grpc]}
  telemetry: {metrics: {level: none}}
YAML
XDG_STATE_HOME=$work build/otelcol-stallspan --config "$work/collector.yaml" >"$work/collector.log" 2>&1 &
collector=$!
trap 'kill "$jaeger" "$collector"; wait || true; rm -r "$work"' EXIT
until curl -s http://127.0.0.1:14318/ >"$work/page"; do
	kill -0 "$collector" || { cat "$work/collector.log" >&2; exit 1; }
	sleep 0.2
done
OTLP_HTTP=127.0.0.1:14318 python3 examples/collector/epochs.py "$work/samples.bin"
until annotated=$(trace epochs.py) && [[ -n $annotated ]]; do sleep 0.5; done
node lab/tracepictures/take.mjs "$annotated" docs/images/jaeger-processor.png 530 'epoch'
ls -l docs/images/jaeger-*.png
