package export

import (
	"reflect"
	"testing"
)

func TestTargets(t *testing.T) {
	const endpoint, spans, points = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	all := func(network, address string) []Target {
		return []Target{
			{"traces", endpoint, network, address, ""}, {"metrics", endpoint, network, address, ""},
			{"logs", endpoint, network, address, ""},
		}
	}
	http := map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
	for _, c := range []struct {
		set  map[string]string
		want []Target
	}{
		{nil, nil},
		{map[string]string{endpoint: "http://localhost:4317"}, all("tcp", "localhost:4317")},
		{map[string]string{endpoint: "https://user:secret@backend"}, all("tcp", "backend:443")},
		{map[string]string{endpoint: "http://backend"}, all("tcp", "backend:443")}, // gRPC's own default, also without TLS
		{merge(http, endpoint, "http://backend/otlp"), all("tcp", "backend:80")},
		{merge(http, endpoint, "https://[::1]"), all("tcp", "[::1]:443")},
		{map[string]string{endpoint: "localhost:4317"}, all("tcp", "localhost:4317")},
		{map[string]string{endpoint: "backend"}, all("tcp", "backend:443")},
		{map[string]string{endpoint: "dns:///backend:4317"}, all("tcp", "backend:4317")},
		{map[string]string{endpoint: "dns:backend:4317"}, all("tcp", "backend:4317")},
		{map[string]string{endpoint: "passthrough:///192.0.2.1:4317"}, all("tcp", "192.0.2.1:4317")},
		{map[string]string{endpoint: "unix:///run/otlp.sock"}, all("unix", "/run/otlp.sock")},
		{map[string]string{endpoint: "unix:/run/otlp.sock"}, all("unix", "/run/otlp.sock")},
		{map[string]string{endpoint: "xds:///secret@backend"}, all("", "")},
		{map[string]string{spans: "http://a:1", points: "http://b:2"},
			[]Target{{"traces", spans, "tcp", "a:1", ""}, {"metrics", points, "tcp", "b:2", ""}}},
		{map[string]string{endpoint: "http://a:1", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"},
			[]Target{{"traces", endpoint, "tcp", "a:1", ""}}},
		{map[string]string{endpoint: "http://a:1", "OTEL_SDK_DISABLED": "true"}, nil},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range c.set {
				t.Setenv(name, value)
			}
			got, err := Targets()
			for i := range got {
				got[i].Proxy = "" // whatever proxy this machine has
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v: got %+v, %v, want %+v", c.set, got, err, c.want)
			}
		})
	}
	t.Setenv(endpoint, "http://")
	if got, err := Targets(); err == nil || got != nil {
		t.Errorf("endpoint without a host: got %+v, %v, want an error", got, err)
	}
}

func merge(set map[string]string, name, value string) map[string]string {
	merged := map[string]string{name: value}
	for k, v := range set {
		merged[k] = v
	}
	return merged
}

// A scheme that gRPC does not know is refused at once: it would look for a host of that name until the end.
func TestUnknownScheme(t *testing.T) {
	for endpoint, refused := range map[string]bool{"garbage://": true, "grpc://host:4317": true, "xds:///backend": false,
		"http://localhost:4317": false, "localhost:4317": false, "unix:///run/otel.sock": false} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		if err := traces.checkScheme(); (err != nil) != refused {
			t.Errorf("%s: got %v, want an error: %v", endpoint, err, refused)
		}
	}
}
