package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Variables that cannot be followed are errors of one line that name the variable and never a secret.
func TestWrongEnvironment(t *testing.T) {
	folder := t.TempDir()
	_, good := selfSigned(t)
	empty := filepath.Join(folder, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, test := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{endpoint: "127.0.0.1:4317"}, endpoint + ` is "127.0.0.1:4317": write it like http://localhost:4317`},
		{map[string]string{endpoint: "localhost:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
			endpoint + ` is "localhost:4318": write it like http://localhost:4318`},
		{map[string]string{endpoint: "http://"}, endpoint + ` is "http://": write it like`},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a b"}, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is "http://a b"`},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			`OTEL_EXPORTER_OTLP_PROTOCOL is "http/json": grpc and http/protobuf are possible`},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "arrow"},
			`OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is "arrow"`},
		{map[string]string{"OTEL_TRACES_EXPORTER": "console"}, `OTEL_TRACES_EXPORTER is "console": otlp and none are possible`},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, `OTEL_METRICS_EXPORTER is "prometheus"`},
		{map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20SECRET,SECRET"}, "OTEL_EXPORTER_OTLP_HEADERS: header 2 is"},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a b=SECRET"}, "OTEL_EXPORTER_OTLP_METRICS_HEADERS: header 1 is"},
		{map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=%zzSECRET"}, "OTEL_EXPORTER_OTLP_HEADERS: header 1 is"},
		{map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, `OTEL_EXPORTER_OTLP_TIMEOUT is "10s": give whole milliseconds`},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "-1"}, `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT is "-1"`},
		{map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "0"}, `OTEL_METRIC_EXPORT_INTERVAL is "0"`},
		{map[string]string{"OTEL_METRIC_EXPORT_TIMEOUT": "99999999999999999999"}, `OTEL_METRIC_EXPORT_TIMEOUT is`},
		{map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, `OTEL_EXPORTER_OTLP_COMPRESSION is "zstd": gzip and none are possible`},
		{map[string]string{"OTEL_TRACES_SAMPLER": "xray"}, `OTEL_TRACES_SAMPLER is "xray": always_on`},
		{map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, `OTEL_TRACES_SAMPLER_ARG is "NaN"`},
		{map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"}, `OTEL_RESOURCE_ATTRIBUTES: "c" is not of the form key=value`},
		{map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=%"}, `OTEL_RESOURCE_ATTRIBUTES: "a=%" is not`},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": folder + "/none.pem"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: open "},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": empty}, "holds no certificate in PEM format"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/dev/zero"}, "larger than 4 MiB"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": good},
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is set: set OTEL_EXPORTER_OTLP_CLIENT_KEY too"},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": good},
			"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY is set: set OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE too"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": good, "OTEL_EXPORTER_OTLP_CLIENT_KEY": empty}, "do not go together"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": good}, endpoint + " begins with http:, which uses no TLS"},
	} {
		t.Run(test.want, func(t *testing.T) {
			set := map[string]string{endpoint: "http://127.0.0.1:1"}
			for k, v := range test.set {
				set[k] = v
			}
			environment(t, set)
			_, err := New(t.Context(), Options{Collect: func() metricdata.ScopeMetrics { return metricdata.ScopeMetrics{} }})
			if err == nil {
				t.Fatal("no error")
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "SECRET") || strings.Contains(text, "\n") {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

func TestRouteOf(t *testing.T) {
	for _, test := range []struct {
		name            string
		set             map[string]string
		traces, metrics string // the protocols, "" when the signal does not leave
		timeout         time.Duration
	}{
		{"an endpoint for both", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4317"}, "grpc", "grpc", 10 * time.Second},
		{"without a scheme", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "grpc", "grpc", 10 * time.Second},
		{"gRPC's own scheme", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "unix:///run/otlp.sock"}, "grpc", "grpc", 10 * time.Second},
		{"an empty one is none", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, "", "", 0},
		{"traces alone", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a:1"}, "grpc", "", 10 * time.Second},
		{"metrics alone", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a:1"}, "", "grpc", 0},
		{"switched off", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_SDK_DISABLED": "TRUE"}, "", "", 0},
		{"one of two", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_METRICS_EXPORTER": "None",
			"OTEL_TRACES_EXPORTER": "otlp"}, "grpc", "", 10 * time.Second},
		{"a protocol each", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "HTTP/protobuf",
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TIMEOUT": "500"}, "http/protobuf", "grpc", time.Second / 2},
		{"a timeout of its own", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "5",
			"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "7"}, "grpc", "grpc", 7 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t, test.set)
			for s, want := range map[signal]string{traces: test.traces, metrics: test.metrics} {
				r, err := routeOf(s)
				switch {
				case err != nil:
					t.Error(err)
				case (r != nil) != (want != ""):
					t.Errorf("%s leave: %v", s, r != nil)
				case r != nil && r.protocol != want:
					t.Errorf("%s leave over %s", s, r.protocol)
				case s == traces && r != nil && r.timeout != test.timeout:
					t.Errorf("timeout %v", r.timeout)
				}
			}
		})
	}
}

func FuzzCheckHeaders(f *testing.F) {
	for _, seed := range []string{"a=b", "a=b,c=d%20e", "=", ",", "a", "A_1!=%", "\x00=b", "ä=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := checkHeaders("V", text)
		if pairs := strings.Count(text, ",") + 1; err == nil && strings.Count(text, "=") < pairs {
			t.Errorf("%q passes as %d headers", text, pairs)
		}
	})
}
