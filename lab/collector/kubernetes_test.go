package collector

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The configs in the manifests that the Helm chart makes are valid.
func TestKubernetesConfigs(t *testing.T) {
	for _, path := range []string{"../../deploy/kubernetes/collector.yaml", "../chart/testdata/everything.yaml",
		"../chart/testdata/unprivileged.yaml"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		configs := 0
		for decoder := yaml.NewDecoder(file); ; {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
				Data     map[string]string
			}
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			text, ok := object.Data["collector.yaml"]
			if object.Kind != "ConfigMap" || !ok {
				continue
			}
			configs++
			c := prepare(t, "validate", "--config", "yaml:"+text)
			if err := c.Run(); err != nil {
				t.Errorf("%s, %s: got %v, want no error\n%s", path, object.Metadata.Name, err, c.log)
			}
		}
		if configs == 0 {
			t.Errorf("%s: got no config of a Collector, want one", path)
		}
	}
}

// Where several users may send spans, what they claim to be is deleted before spans are annotated. In a cluster, the
// Collector adds what it knows in between.
func TestClaimsAreDeleted(t *testing.T) {
	inCluster := []string{"host.name", "host.id", "k8s.node.name", "k8s.cluster.name"}
	for path, of := range map[string]struct {
		pipeline  string
		order     []string
		claimed   []string // besides those of all
		container string   // how a claim of the host's name is deleted, which Docker makes of the container's ID
	}{
		"../../deploy/helm/stallspan/files/node.yaml": {"traces/pods", []string{"transform/claims", "k8s_attributes", "stallspan"},
			inCluster, ""},
		"../../examples/collector/node.yaml": {"traces/sent", []string{"transform/claims", "stallspan"}, nil, "host.name"},
		"../../packaging/etc/collector.yaml": {"traces/sent", []string{"transform/claims", "stallspan"}, nil, "host.name"},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Processors map[string]struct {
				Statements []struct{ Statements []string } `yaml:"trace_statements"`
			}
			Service struct {
				Pipelines map[string]struct{ Receivers, Processors []string }
			}
		}
		if err := yaml.Unmarshal(text, &config); err != nil {
			t.Fatal(err)
		}
		order := slices.DeleteFunc(config.Service.Pipelines[of.pipeline].Processors, func(name string) bool {
			return !slices.Contains(of.order, name)
		})
		if !slices.Equal(order, of.order) {
			t.Errorf("%s: got the order %v, want %v", path, order, of.order)
		}
		for name, p := range config.Service.Pipelines {
			if slices.Contains(p.Receivers, "otlp") && slices.Contains(p.Processors, "stallspan") != (name == of.pipeline) {
				t.Errorf("%s: got the pipeline %s with %v, want claims deleted in it", path, name, p.Processors)
			}
		}
		var statements []string
		for _, s := range config.Processors["transform/claims"].Statements {
			statements = append(statements, s.Statements...)
		}
		if len(statements) == 0 {
			t.Fatalf("%s: got no statements, want that claims are deleted", path)
		}
		_, quoted, _ := strings.Cut(statements[0], `"`)
		pattern, _, _ := strings.Cut(quoted, `"`)
		deleted, err := regexp.Compile(strings.ReplaceAll(pattern, `\\`, `\`))
		if err != nil {
			t.Fatal(err)
		}
		always := []string{"container.id", "process.pid", "vllm.process_id", "k8s.pod.uid", "k8s.namespace.name"}
		for _, name := range append(always, of.claimed...) {
			if !deleted.MatchString(name) {
				t.Errorf("%s: the claim %s: got it kept by %s, want it deleted", path, name, pattern)
			}
		}
		second := `delete_key(attributes, "` + of.container
		if of.container != "" && (len(statements) != 2 || !strings.HasPrefix(statements[1], second)) {
			t.Errorf("%s: got %q, want %s deleted where it is a container's ID", path, statements, of.container)
		}
	}
}
