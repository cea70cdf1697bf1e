package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugins "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/stallspan/stallspan/internal/identity"
)

// gpu is what the kubelet gives to a pod. There is no such device.
const gpu = "GPU-0000aaaa-0000-4000-8000-000000000000"

// plugin is a device plugin with that GPU.
type plugin struct {
	plugins.UnimplementedDevicePluginServer
}

func (plugin) GetDevicePluginOptions(context.Context, *plugins.Empty) (*plugins.DevicePluginOptions, error) {
	return &plugins.DevicePluginOptions{}, nil
}

func (plugin) ListAndWatch(_ *plugins.Empty, s grpc.ServerStreamingServer[plugins.ListAndWatchResponse]) error {
	list := &plugins.ListAndWatchResponse{Devices: []*plugins.Device{{ID: gpu, Health: plugins.Healthy}}}
	if err := s.Send(list); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

func (plugin) Allocate(_ context.Context, r *plugins.AllocateRequest) (*plugins.AllocateResponse, error) {
	answer := &plugins.AllocateResponse{}
	for range r.GetContainerRequests() {
		answer.ContainerResponses = append(answer.ContainerResponses, &plugins.ContainerAllocateResponse{})
	}
	return answer, nil
}

// provide offers the GPU to the kubelet.
func provide(t *testing.T) {
	t.Helper()
	const name = "stallspan-test.sock"
	path := plugins.DevicePluginPath + name
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	plugins.RegisterDevicePluginServer(server, plugin{})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })

	client, err := grpc.NewClient("unix://"+plugins.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err = plugins.NewRegistrationClient(client).Register(ctx, &plugins.RegisterRequest{Version: plugins.Version,
		Endpoint: name, ResourceName: "nvidia.com/gpu"}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("register a device plugin: got %v, want that the kubelet takes it", err)
	}
}

// first returns the first process of a container.
func first(container string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), container) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// A process is named by a real kubelet: by its link to the container's log, and by the GPU that it gave to the pod.
func TestKubelet(t *testing.T) {
	folder := os.Getenv("STALLSPAN_CLUSTER")
	if folder == "" {
		t.Skip("make cluster starts a cluster and runs this test")
	}
	c := cluster{t: t, folder: folder}
	provide(t)
	c.until("a node with a GPU", func() bool {
		return c.must("kubectl", "get", "node", "node-1", "-o", `jsonpath={.status.allocatable.nvidia\.com/gpu}`) == "1"
	})
	c.must("kubectl", "create", "namespace", "research")
	manifest := `{apiVersion: v1, kind: Pod, metadata: {name: train-0, namespace: research}, spec: {restartPolicy: Never,
  automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [{name: trainer,
    image: "localhost/pause:1", imagePullPolicy: Never, resources: {limits: {nvidia.com/gpu: 1}}}]}}`
	c.until("a service account", func() bool {
		_, err := c.command("", "kubectl", "-n", "research", "get", "serviceaccount", "default")
		return err == nil
	})
	if out, err := c.command(manifest, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatalf("the pod: %v\n%s", err, out)
	}
	t.Cleanup(func() { _, _ = c.command("", "kubectl", "-n", "research", "delete", "pod", "train-0", "--wait=false") })
	c.must("kubectl", "-n", "research", "wait", "pod/train-0", "--for=condition=Ready", "--timeout", timeout.String())
	of := func(path string) string {
		return c.must("kubectl", "-n", "research", "get", "pod", "train-0", "-o", "jsonpath={"+path+"}")
	}
	uid := of(".metadata.uid")
	_, container, _ := strings.Cut(of(".status.containerStatuses[0].containerID"), "://")
	pid := first(container)

	// A root without the folder of the kubelet's links leaves PodResources.
	bare := t.TempDir()
	if err := errors.Join(os.Symlink("/proc", bare+"/proc"), os.Symlink("/etc", bare+"/etc")); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "kubelet/pod-resources/kubelet.sock")
	for name, by := range map[string]struct {
		root, socket string
		gpus         []string
	}{"by the log": {"/", identity.Off, nil}, "by the GPU": {bare, socket, []string{gpu}}} {
		t.Run(name, func(t *testing.T) {
			f := identity.New(by.root, identity.Options{PodResources: by.socket})
			defer f.Close()
			var got identity.Identity
			for end := time.Now().Add(time.Minute); got.Name != "train-0" && time.Now().Before(end); {
				got = f.Of(pid, by.gpus...)
				time.Sleep(100 * time.Millisecond)
			}
			found := map[string]string{}
			for _, a := range got.Attributes {
				if !a.Claimed {
					found[a.Key] = a.Value
				}
			}
			for key, want := range map[string]string{"k8s.pod.name": "train-0", "k8s.namespace.name": "research",
				"k8s.container.name": "trainer", "k8s.pod.uid": uid, "container.id": container} {
				if found[key] != want {
					t.Errorf("%s of process %d: got %q, want %q", key, pid, found[key], want)
				}
			}
			if t.Failed() {
				t.Logf("got %+v", got)
			}
		})
	}
}
