#!/bin/sh
# Builds Jaeger (traces) and VictoriaMetrics (metrics) from their Go modules and runs both on loopback until ^C, to look
# at what Stallspan sends: see docs/backends.md. Needs Go and a few minutes the first time; nothing is installed.
#
#   hack/backends.sh [FOLDER]     default: $TMPDIR/stallspan-backends; it keeps the two programs, the data is removed
set -eu

jaeger=github.com/jaegertracing/jaeger@v1.76.0 # the module of Jaeger 2.13
victoria=github.com/VictoriaMetrics/VictoriaMetrics@v1.150.0
folder=${1:-${TMPDIR:-/tmp}/stallspan-backends}
mkdir -p "$folder"
cd "$folder"

# build NAME MODULE PACKAGE builds in a copy: Jaeger's go.mod replaces a module, which `go install` refuses.
build() {
	[ -x "$1" ] && return
	echo "building $2"
	rm -rf "$1.source" # of a build that was cut off
	source=$(cd / && go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	cp -R "$source" "$1.source"
	chmod -R u+w "$1.source"
	(cd "$1.source" && GOFLAGS=-mod=mod GOWORK=off go build -o "../$1" "$3")
	rm -rf "$1.source"
}
build jaeger "$jaeger" ./cmd/jaeger
build victoria-metrics "$victoria" ./app/victoria-metrics

# Jaeger's built-in configuration listens on every interface with its query API.
cat >jaeger.yaml <<'YAML'
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry:
    metrics: {level: none}
extensions:
  jaeger_storage:
    backends:
      memory: {memory: {max_traces: 10000}}
  jaeger_query:
    storage: {traces: memory}
    http: {endpoint: "127.0.0.1:16686"}
    grpc: {endpoint: "127.0.0.1:16685"}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:4317"}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
YAML

./jaeger --config jaeger.yaml >jaeger.log 2>&1 &
traces=$!
# latencyOffset: by default the newest 30 s are not shown.
./victoria-metrics -httpListenAddr=127.0.0.1:8428 -storageDataPath=victoria-data -search.latencyOffset=0s \
	-opentelemetry.usePrometheusNaming >victoria.log 2>&1 &
points=$!
trap 'kill "$traces" "$points" 2>/dev/null || true; wait; rm -rf victoria-data' EXIT
trap 'exit 0' INT TERM
sleep 2
for log in jaeger victoria; do
	[ "$log" = jaeger ] && server=$traces || server=$points
	kill -0 "$server" 2>/dev/null && continue
	echo "$log did not start: see $folder/$log.log" >&2
	exit 1
done

cat <<'TEXT'
export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4317
export OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:8428/opentelemetry/v1/metrics
export OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf

spans:    http://127.0.0.1:16686/api/traces?service=stallspan
metrics:  http://127.0.0.1:8428/vmui   (logs of both: *.log in this folder)
TEXT
echo "Running in $folder until ^C."
wait
