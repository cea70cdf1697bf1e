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

// manifest has the fields of a DaemonSet that the test reads.
type manifest struct {
	Kind string
	Spec struct {
		Ingress []struct {
			From  []any
			Ports []struct{ Port int }
		}
		Template struct {
			Spec struct {
				Containers []struct {
					Ports []struct {
						ContainerPort int `yaml:"containerPort"`
					}
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name     string
					HostPath *struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

// The Kubernetes example mounts the host below the root_path of its config, read-only.
func TestKubernetesMounts(t *testing.T) {
	file, err := os.Open("../../examples/collector/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kinds := map[string]int{}
	limited, opened := map[int]bool{}, map[int]bool{} // ports of the policy, and of the container
	decoder := yaml.NewDecoder(file)
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[m.Kind]++
		for _, rule := range m.Spec.Ingress {
			for _, p := range rule.Ports {
				limited[p.Port] = len(rule.From) > 0
			}
		}
		pod := m.Spec.Template.Spec
		hostPaths := map[string]string{}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				hostPaths[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range pod.Containers {
			for _, p := range c.Ports {
				opened[p.ContainerPort] = true
			}
			for _, mount := range c.VolumeMounts {
				path, host := hostPaths[mount.Name]
				if host && mount.Name != "socket" && (!mount.ReadOnly || mount.MountPath != "/hostfs"+path) {
					t.Errorf("mount of %s: got %s, read-only %v, want /hostfs%s, read-only", path, mount.MountPath, mount.ReadOnly,
						path)
				}
			}
		}
	}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "NetworkPolicy",
		"DaemonSet"} {
		if kinds[kind] != 1 {
			t.Errorf("objects of kind %s: got %d, want 1", kind, kinds[kind])
		}
	}
	for port := range opened {
		if !limited[port] {
			t.Errorf("port %d: got no rule of the NetworkPolicy with senders, want one", port)
		}
	}
}

// What pods claim to be is deleted before the Collector adds what it knows, and both before spans are annotated.
func TestKubernetesDeletesClaims(t *testing.T) {
	text, err := os.ReadFile("../../examples/collector/daemonset.yaml")
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
		"k8s.namespace.name"} {
		if !deleted.MatchString(name) {
			t.Errorf("the claim %s: got it kept by %s, want it deleted", name, pattern)
		}
	}
}
