package export

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestResource(t *testing.T) {
	environment(t, nil)
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want map[attribute.Key]string) {
		t.Helper()
		res, err := Resource(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			got, found := res.Set().Value(key)
			if got.String() != value && found || found == (value == "") {
				t.Errorf("%s is %q, want %q", key, got.String(), value)
			}
		}
		id, _ := res.Set().Value("service.instance.id")
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id.AsString()) {
			t.Errorf("service.instance.id %q", id.AsString())
		}
	}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	check(map[attribute.Key]string{"host.id": "", "host.name": own, "service.name": "stallspan"})
	write("var/lib/dbus/machine-id", "0f0f\n")
	check(map[attribute.Key]string{"host.id": "0f0f"})
	write("etc/machine-id", "4c1d6f1f8a0b4f6c9d2e3f4a5b6c7d8e\n")
	write("etc/hostname", "node-7\n")
	check(map[attribute.Key]string{"host.id": "4c1d6f1f8a0b4f6c9d2e3f4a5b6c7d8e", "host.name": "node-7"})

	t.Setenv("OTEL_SERVICE_NAME", "trainer")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host.name=a%2Cb,k8s.pod.name=p")
	check(map[attribute.Key]string{"service.name": "trainer", "host.name": "a,b", "k8s.pod.name": "p", "process.pid": ""})
}
