package agent

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// In a pod, metrics and the page name the machine below sampling.root_path. Metrics that are sent or scraped also name
// the pod, by OTEL_RESOURCE_ATTRIBUTES.
func TestNamesInPod(t *testing.T) {
	t.Parallel()
	root, b := fixture.Root(t, "check_server"), serveBackend(t)
	fixture.Write(t, root, "etc/hostname", []byte("node-7\n"))
	fixture.Write(t, root, "etc/machine-id", []byte("4c1d6f1f8a0b4f6c9d2e3f4a5b6c7d8e\n"))
	config := filepath.Join(t.TempDir(), "agent.yaml")
	text := fmt.Sprintf("sampling: {root_path: %s}\nsmart: {enabled: false}\nprometheus: {endpoint: 0}\n", root)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := socketIn(t)
	v := stallspan(t, "agent", "--config", config)
	var said liveOutput
	v.Stderr = &said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+b.address,
		"OTEL_METRIC_EXPORT_INTERVAL=100", "OTEL_RESOURCE_ATTRIBUTES=k8s.node.name=node-7,k8s.namespace.name=stallspan,"+
			"k8s.pod.name=stallspan-node-x7k2p,k8s.pod.uid=0b5c1f62-6d0e-4f43-8f0a-2f8f4c1d9e55")
	v.start()
	said.until(t, 1, "metrics for Prometheus are at ")
	address := regexp.MustCompile(`metrics for Prometheus are at (\S+)`).FindStringSubmatch(said.String())[1]
	b.until(t, "stallspan.reading.late")
	want := map[string]string{"host.name": "node-7", "host.id": "4c1d6f1f8a0b4f6c9d2e3f4a5b6c7d8e",
		"k8s.node.name": "node-7", "k8s.namespace.name": "stallspan", "k8s.pod.name": "stallspan-node-x7k2p",
		"k8s.pod.uid": "0b5c1f62-6d0e-4f43-8f0a-2f8f4c1d9e55"}
	_, scraped := get(t, http.DefaultClient, address, nil)
	if status, page := get(t, overSocket(t, socket), "http://stallspan/", nil); !strings.Contains(page, "node-7") {
		t.Errorf("the page: got %d %.300s, want it to name node-7", status, page)
	}
	stop(t, v)
	for _, r := range b.metrics {
		sent := attributes(r.Resource.Attributes)
		for name, value := range want {
			if sent[name] != value {
				t.Fatalf("%s of what is sent: got %v, want %s", name, sent[name], value)
			}
		}
	}
	info := regexp.MustCompile(`(?m)^target_info\{.*`).FindString(scraped)
	for name, value := range want {
		if label := fmt.Sprintf("%s=%q", strings.ReplaceAll(name, ".", "_"), value); !strings.Contains(info, label) {
			t.Errorf("target_info: got %s, want %s", info, label)
		}
	}
	series := regexp.MustCompile(`(?m)^stallspan_reading_late.*`).FindString(scraped)
	if !strings.Contains(series, `host_name="node-7"`) {
		t.Errorf("a series: got %s, want the host's name node-7", series)
	}
}
