package export

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
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

// kept is an exporter that keeps the resource of each span, by the span's name.
type kept map[string]*resource.Resource

func (k kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		k[s.Name()] = s.Resource()
	}
	return nil
}

func (k kept) Shutdown(context.Context) error { return nil }

// The span of a job's window and its children have the resource that the metrics of the job have.
func TestResourceOfAJob(t *testing.T) {
	spans := kept{}
	e := withExporter(spans)
	s := someEpoch(time.Now())
	e.Begin(s.Name, s.Start, trace.SpanContext{}).End(s)
	job := &emit.Job{ID: "7", Attributes: []attribute.KeyValue{
		attribute.Int("process.pid", 42), attribute.String("k8s.pod.name", "llm-0"),
	}}
	s.Name, s.Job = "of a job", job
	s.Children = s.Children[:1]
	s.Children[0].Name = "child"
	e.Begin(s.Name, s.Start, trace.SpanContext{}).End(s)
	e.Close(within(t, patience))

	want := resource.NewSchemaless(job.Resource(e.spans.machine.Attributes())...)
	for _, name := range []string{"of a job", "child"} {
		if got := spans[name]; !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	pod, _ := want.Set().Value("k8s.pod.name")
	pid, _ := want.Set().Value("process.pid")
	if host, found := want.Set().Value("host.name"); !found || host.AsString() == "" || pod.AsString() != "llm-0" ||
		pid.AsInt64() != 42 {
		t.Errorf("got %v, want those of the machine and of the job", want)
	}
	if got := spans["epoch train.py"]; got.Equal(want) {
		t.Errorf("without a job: got %v, want that of this program", got)
	}
}
