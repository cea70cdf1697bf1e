#!/bin/sh
# Builds OTLP backends from their Go modules and runs them on loopback until ^C, to look at what Stallspan sends: see
# docs/backends.md. Needs Go and a few minutes the first time; nothing is installed.
#
#   hack/backends.sh [--build] [NAME...]     jaeger, tempo, victoria-metrics; by default jaeger and victoria-metrics
#
# --build only builds. The programs stay in the folder $BACKENDS (by default $TMPDIR/stallspan-backends), their data does
# not.
set -eu

only_build=
if [ "${1:-}" = --build ]; then
	only_build=yes
	shift
fi
[ $# -gt 0 ] || set -- jaeger victoria-metrics
folder=${BACKENDS:-${TMPDIR:-/tmp}/stallspan-backends}
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

for name; do
	case $name in
	jaeger) build "$name" github.com/jaegertracing/jaeger@v1.76.0 ./cmd/jaeger ;; # the module of Jaeger 2.13
	tempo) build "$name" github.com/grafana/tempo@v1.5.1-0.20251008140505-607c7fb69662 ./cmd/tempo ;; # Tempo 2.9
	victoria-metrics) build "$name" github.com/VictoriaMetrics/VictoriaMetrics@v1.150.0 ./app/victoria-metrics ;;
	*)
		echo "$name: the backends are jaeger, tempo and victoria-metrics" >&2
		exit 2
		;;
	esac
done
[ -z "$only_build" ] || exit 0

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

# A span is found a few seconds after it came; Tempo's defaults wait for longer.
cat >tempo.yaml <<'YAML'
server: {http_listen_address: 127.0.0.1, http_listen_port: 3200, grpc_listen_address: 127.0.0.1, grpc_listen_port: 9096}
distributor:
  receivers:
    otlp:
      protocols:
        grpc: {endpoint: "127.0.0.1:4417"}
ingester:
  trace_idle_period: 1s
  flush_check_period: 1s
  lifecycler: {address: 127.0.0.1, ring: {kvstore: {store: inmemory}, replication_factor: 1}}
memberlist: {bind_addr: [127.0.0.1]}
storage:
  trace:
    backend: local
    local: {path: tempo-data/blocks}
    wal: {path: tempo-data/wal}
usage_report: {reporting_enabled: false}
YAML

running=
trap 'kill -9 $running 2>/dev/null || true; wait; rm -rf victoria-data tempo-data' EXIT # Tempo ignores TERM for minutes
trap 'exit 0' INT TERM
start() {
	name=$1
	"./$@" >"$name.log" 2>&1 &
	running="$running $!"
	sleep 2
	kill -0 $! 2>/dev/null && return
	echo "$name did not start: see $folder/$name.log" >&2
	exit 1
}
for name; do
	case $name in
	jaeger)
		start jaeger --config jaeger.yaml
		cat <<-'TEXT'
			export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4317
			spans:    http://127.0.0.1:16686/api/traces?service=stallspan

		TEXT
		;;
	tempo)
		start tempo -config.file tempo.yaml
		cat <<-'TEXT'
			export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4417
			spans:    http://127.0.0.1:3200/api/search?q={span.stallspan.slow=true}

		TEXT
		;;
	victoria-metrics)
		# latencyOffset: by default the newest 30 s are not shown.
		start victoria-metrics -httpListenAddr=127.0.0.1:8428 -storageDataPath=victoria-data -search.latencyOffset=0s \
			-opentelemetry.usePrometheusNaming
		cat <<-'TEXT'
			export OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:8428/opentelemetry/v1/metrics
			export OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf
			metrics:  http://127.0.0.1:8428/vmui

		TEXT
		;;
	esac
done
echo "Running until ^C; logs: *.log in $folder"
wait
