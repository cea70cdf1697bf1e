package distribution

import (
	"errors"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// manifest is what this test looks at of a DaemonSet.
type manifest struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
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

// What the example for Kubernetes mounts of the host is below the root_path of its config, and cannot be written to.
func TestKubernetesMounts(t *testing.T) {
	file, err := os.Open("../../examples/collector/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kinds := map[string]int{}
	decoder := yaml.NewDecoder(file)
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kinds[m.Kind]++
		pod := m.Spec.Template.Spec
		ofTheHost := map[string]string{}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				ofTheHost[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range pod.Containers {
			for _, mount := range c.VolumeMounts {
				path, host := ofTheHost[mount.Name]
				if host && mount.Name != "socket" && (!mount.ReadOnly || mount.MountPath != "/hostfs"+path) {
					t.Errorf("the host's %s is at %s, read-only: %v", path, mount.MountPath, mount.ReadOnly)
				}
			}
		}
	}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "DaemonSet"} {
		if kinds[kind] != 1 {
			t.Errorf("%d of kind %s", kinds[kind], kind)
		}
	}
}
