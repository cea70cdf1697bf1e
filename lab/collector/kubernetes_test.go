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

// What pods claim to be is deleted before the Collector adds what it knows, and both before spans are annotated.
func TestKubernetesDeletesClaims(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/stallspan/files/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Processors map[string]struct {
			Statements []struct{ Statements []string } `yaml:"trace_statements"`
		}
		Service struct {
			Pipelines map[string]struct{ Processors []string }
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	order := config.Service.Pipelines["traces/pods"].Processors
	claims, known, us := slices.Index(order, "transform/claims"), slices.Index(order, "k8s_attributes"),
		slices.Index(order, "stallspan")
	if claims < 0 || known < claims || us < known {
		t.Errorf("got the order %v, want claims deleted, then k8s_attributes, then stallspan", order)
	}
	var pattern string
	for _, s := range config.Processors["transform/claims"].Statements {
		for _, statement := range s.Statements {
			if _, quoted, ok := strings.Cut(statement, `"`); ok {
				pattern, _, _ = strings.Cut(quoted, `"`)
			}
		}
	}
	deleted, err := regexp.Compile(strings.ReplaceAll(pattern, `\\`, `\`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"container.id", "process.pid", "host.name", "host.id", "k8s.node.name", "k8s.pod.uid",
		"k8s.namespace.name", "k8s.cluster.name"} {
		if !deleted.MatchString(name) {
			t.Errorf("the claim %s: got it kept by %s, want it deleted", name, pattern)
		}
	}
}
