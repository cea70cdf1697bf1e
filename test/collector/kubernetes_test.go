package collector

import (
	"errors"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// manifest has the fields of a DaemonSet that the test reads.
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

// The Kubernetes example mounts the host below the root_path of its config, read-only.
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
		hostPaths := map[string]string{}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				hostPaths[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range pod.Containers {
			for _, mount := range c.VolumeMounts {
				path, host := hostPaths[mount.Name]
				if host && mount.Name != "socket" && (!mount.ReadOnly || mount.MountPath != "/hostfs"+path) {
					t.Errorf("mount of %s: got %s, read-only %v, want /hostfs%s, read-only", path, mount.MountPath, mount.ReadOnly,
						path)
				}
			}
		}
	}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "DaemonSet"} {
		if kinds[kind] != 1 {
			t.Errorf("objects of kind %s: got %d, want 1", kind, kinds[kind])
		}
	}
}
