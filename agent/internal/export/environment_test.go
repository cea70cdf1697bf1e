package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A wrong variable is refused by New or reported, in one line that holds no secret. No variable stops the program
// later.
func TestWrongEnvironment(t *testing.T) {
	folder := t.TempDir()
	_, good := selfSigned(t)
	empty := filepath.Join(folder, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const endpoint, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	type env map[string]string
	for _, test := range []struct {
		set     env
		refused string // part of the error of New
		report  string // part of a reported line
	}{
		{set: env{protocol: "http/json"}, refused: protocol + ` is "http/json": set it to grpc or http/protobuf`},
		{set: env{protocol: "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "arrow"},
			refused: `OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is "arrow"`},
		{set: env{protocol: protocolHTTP, "OTEL_EXPORTER_OTLP_CERTIFICATE": folder + "/none.pem"},
			refused: "OTEL_EXPORTER_OTLP_CERTIFICATE: open "},
		{set: env{protocol: protocolHTTP, "OTEL_EXPORTER_OTLP_CERTIFICATE": empty},
			refused: "holds no certificate in PEM format"},
		{set: env{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": good, "OTEL_EXPORTER_OTLP_CLIENT_KEY": empty,
			protocol: protocolHTTP}, refused: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key"},
		{set: env{protocol: protocolHTTP, "OTEL_EXPORTER_OTLP_CERTIFICATE": good}, refused: "cannot use TLS"},

		{set: env{"OTEL_TRACES_EXPORTER": "xray"}, report: `no traces are exported: OTEL_TRACES_EXPORTER is "xray"`},
		{set: env{endpoint: "ht%tp://user:SECRET@host"}, report: "xxxxx@host"},
		{set: env{endpoint: "http://user:SECRET@ho st", protocol: protocolHTTP}, report: "xxxxx@ho st"},
		{set: env{endpoint: "127.0.0.1:4317"}, report: "first path segment in URL cannot contain colon"},
		{set: env{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20SECRET,SECRET"}, report: "parse headers: missing '="},
		{set: env{"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a b=SECRET"}, report: "parse headers: invalid header key"},
		{set: env{"OTEL_EXPORTER_OTLP_LOGS_HEADERS": "a b=SECRET"},
			report: "OTEL_EXPORTER_OTLP_LOGS_HEADERS is not of the form name=value"},
		{set: env{"OTEL_EXPORTER_OTLP_HEADERS": "a=%zzSECRET"}, report: "escape header value: invalid URL escape"},
		{set: env{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, report: `parse duration: strconv.Atoi: parsing "10s"`},
		{set: env{"OTEL_METRIC_EXPORT_INTERVAL": "0"}, report: "non-positive duration"},
		{set: env{"OTEL_METRIC_EXPORT_TIMEOUT": "99999999999999999999"}, report: "value out of range"},
		{set: env{"OTEL_TRACES_SAMPLER": "xray"}, report: "unsupported sampler: xray"},
		{set: env{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "x"}, report: "parsing sampler argument"},
		{set: env{"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"}, report: "partial resource: missing value: [c]"},
		{set: env{"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, report: `OTEL_EXPORTER_OTLP_COMPRESSION is "zip" and ignored`},
		{set: env{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": good},
			report: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is ignored: set OTEL_EXPORTER_OTLP_CLIENT_KEY, too"},
		{set: env{"OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY": good},
			report: "OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY is ignored: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, too"},
		{set: env{"OTEL_EXPORTER_OTLP_CERTIFICATE": good}, report: "OTEL_EXPORTER_OTLP_CERTIFICATE is ignored: " + endpoint},
		{set: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"},
			report: `OTEL_EXPORTER_OTLP_ENDPOINT is "nonsense", without a port, so 443 is tried`},
		{set: env{"OTEL_EXPORTER_OTLP_CERTIFICATE": folder + "/none.pem"}, report: "read tls ca cert file: open "},
	} {
		t.Run(test.refused+test.report, func(t *testing.T) {
			set := map[string]string{endpoint: "http://127.0.0.1:1"}
			for k, v := range test.set {
				set[k] = v
			}
			environment(t, set)
			var lines []string
			e, err := New(t.Context(), Options{
				Logs:    true,
				Collect: func() metricdata.ScopeMetrics { return metricdata.ScopeMetrics{} },
				Report:  func(line string) { lines = append(lines, line) },
			})
			if err == nil {
				e.Close(canceled(t))
			} else {
				lines = append(lines, err.Error())
			}
			if refused := test.refused != ""; refused != (err != nil) {
				t.Errorf("New: got error %v, want refused: %v", err, refused)
			}
			all := strings.Join(lines, "\n")
			if !strings.Contains(all, test.refused+test.report) || strings.Contains(all, "SECRET") {
				t.Errorf("lines: got\n%s\nwant %q and no secret", all, test.refused+test.report)
			}
		})
	}
}

func TestReportsEachLineOnce(t *testing.T) {
	environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon", "OTEL_TRACES_SAMPLER": "xray",
	})
	seen := map[string]int{}
	e, err := New(t.Context(), Options{Logs: true, Report: func(line string) { seen[line]++ }})
	if err != nil {
		t.Fatal(err)
	}
	e.Close(canceled(t))
	for line, n := range seen {
		if n != 1 || strings.Contains(line, "\n") {
			t.Errorf("line %q: got %d times, want once and without a line break", line, n)
		}
	}
	if len(seen) < 2 {
		t.Errorf("got %d lines, want one for the timeout and one for the sampler", len(seen))
	}
}

func TestSelectedExporters(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	type env map[string]string
	for _, test := range []struct {
		name            string
		set             env
		traces, metrics bool
		other           string // of metrics
	}{
		{"nothing", nil, false, false, ""},
		{"an endpoint for all", env{endpoint: "http://a:4317"}, true, true, ""},
		{"an empty one is unset", env{endpoint: " "}, false, false, ""},
		{"traces alone", env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a:1"}, true, false, ""},
		{"metrics alone", env{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a:1"}, false, true, ""},
		{"disabled", env{endpoint: "http://a:1", "OTEL_SDK_DISABLED": "TRUE"}, false, false, ""},
		{"none", env{endpoint: "http://a:1", "OTEL_METRICS_EXPORTER": "None", "OTEL_TRACES_EXPORTER": "otlp"}, true, false, ""},
		{"otlp without an endpoint", env{"OTEL_TRACES_EXPORTER": "otlp"}, false, false, ""},
		{"others without an endpoint", env{"OTEL_METRICS_EXPORTER": "prometheus"}, false, false, ""},
		{"others with one", env{endpoint: "http://a:1", "OTEL_METRICS_EXPORTER": "Console"}, true, false, "console"},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t, test.set)
			spans, _ := traces.exported()
			points, other := metrics.exported()
			if spans != test.traces || points != test.metrics || other != test.other {
				t.Errorf("got traces %t, metrics %t or %q; want %+v", spans, points, other, test)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL": "HTTP/protobuf", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "500", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "7",
	})
	for s, want := range map[signal]string{traces: protocolHTTP, metrics: protocolGRPC, logs: protocolHTTP} {
		if got, err := s.protocol(); err != nil || got != want {
			t.Errorf("protocol of %s: got %q, %v, want %q", s, got, err, want)
		}
	}
	for s, want := range map[signal]time.Duration{traces: 7 * time.Millisecond, logs: 500 * time.Millisecond} {
		client, err := s.httpClient()
		if err != nil {
			t.Fatal(err)
		}
		if client.Timeout != want {
			t.Errorf("timeout of %s: got %v, want %v", s, client.Timeout, want)
		}
	}
}
