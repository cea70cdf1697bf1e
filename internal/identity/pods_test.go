package identity

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/test/fixture"
)

// kubelet serves PodResources as the kubelet does.
type kubelet struct {
	api.UnimplementedPodResourcesListerServer
	list func(context.Context) (*api.ListPodResourcesResponse, error)
}

func (k *kubelet) List(ctx context.Context, _ *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	return k.list(ctx)
}

// serve serves on the socket that a node with "/" at root has.
func serve(t testing.TB, root string, list func(context.Context) (*api.ListPodResourcesResponse, error)) {
	t.Helper()
	path := filepath.Join(root, podResourcesSocket)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, &kubelet{list: list})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })
}

// shortRoot is a machine whose path leaves room for the name of a socket.
func shortRoot(t testing.TB) string {
	t.Helper()
	root, err := os.MkdirTemp("", "i")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return root
}

// pod is one of an answer, with one container.
func pod(namespace, name, container string, devices ...string) *api.PodResources {
	return &api.PodResources{Namespace: namespace, Name: name, Containers: []*api.ContainerResources{
		{Name: container, Devices: []*api.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: devices}}},
	}}
}

const (
	gpuA = "GPU-0000aaaa-0000-4000-8000-000000000000"
	gpuB = "GPU-0000bbbb-0000-4000-8000-000000000001"
	gpuC = "GPU-0000cccc-0000-4000-8000-000000000002"
	mig  = "MIG-0000dddd-0000-4000-8000-000000000003"
)

func TestPodsOfTheKubelet(t *testing.T) {
	root := shortRoot(t)
	fixture.Write(t, root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
		[]byte("Model: \t\t NVIDIA H100\nGPU UUID: \t "+gpuC+"\nDevice Minor: \t 5\n"))
	claims := pod("ml", "claims", "c")
	claims.Containers[0].DynamicResources = []*api.DynamicResource{{ClaimName: "one", ClaimNamespace: "ml",
		ClaimResources: []*api.ClaimResource{
			{DriverName: nvidiaClaim, PoolName: "node-1", DeviceName: "gpu-5"},
			{DriverName: "gpu.example.com", PoolName: "node-1", DeviceName: "gpu-5"},
			{DriverName: nvidiaClaim, PoolName: "node-1", DeviceName: "gpu-6"},
		}}}
	two := pod("ml", "two", "first", gpuB)
	two.Containers = append(two.Containers, pod("", "", "second", gpuB).Containers...)
	serve(t, root, func(context.Context) (*api.ListPodResourcesResponse, error) {
		return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{
			pod("ml", "train-0", "trainer", gpuA), two, claims, pod("ml", "slice", "s", mig),
			pod("a", "shared-1", "s", "GPU-5::0"), pod("b", "shared-2", "s", "GPU-5::1"), pod("a", "other", "o", "0", "disk-7"),
		}}, nil
	})
	p := pods{root: root, socket: filepath.Join(root, podResourcesSocket), given: map[podName]claimant{}}
	if _, known := p.of("u1", idA, []string{gpuA}); known {
		t.Error("got a name before the first answer, want none")
	}
	p.asking.Wait(time.Minute)
	for _, test := range []struct {
		uid  string
		gpus []string
		want podName
	}{
		{"u1", []string{gpuA}, podName{"ml", "train-0", "trainer"}},
		{"u2", []string{gpuB}, podName{"ml", "two", ""}}, // which container is not known
		{"u3", []string{gpuC}, podName{"ml", "claims", "c"}},
		{"u4", []string{mig}, podName{"ml", "slice", "s"}},
		{"u5", []string{"GPU-5"}, podName{}},    // two pods share it
		{"u6", []string{gpuA, gpuB}, podName{}}, // of two pods
		{"u7", []string{"GPU-none"}, podName{}}, // of no pod
		{"u8", nil, podName{}},
		{"u1", []string{gpuA, "GPU-none"}, podName{"ml", "train-0", "trainer"}},
	} {
		if got, known := p.of(test.uid, idA, test.gpus); got != test.want || known != (test.want.pod != "") {
			t.Errorf("%s with %v: got %+v, want %+v", test.uid, test.gpus, got, test.want)
		}
	}
	// A second pod uses a GPU that was given to train-0: which of the two is train-0 is not known.
	for _, uid := range []string{"u9", "u1"} {
		if got, known := p.of(uid, idA, []string{gpuA}); known {
			t.Errorf("%s: got %+v, want no name", uid, got)
		}
	}
	// The pod was made again with the same name, a while ago.
	p.given[podName{namespace: "ml", pod: "train-0"}] = claimant{uid: "u1", seen: time.Now().Add(-2 * lastsFor)}
	if got, known := p.of("u9", idA, []string{gpuA}); !known || got.pod != "train-0" {
		t.Errorf("made again: got %+v, want train-0", got)
	}
}

// The container's own log names it, whatever GPU it uses.
func TestPodsByLogs(t *testing.T) {
	root := shortRoot(t)
	fixture.Write(t, root, "var/log/containers/train-0.x_research_trainer-"+idA+".log", nil)
	fixture.Write(t, root, "var/log/containers/a_b-"+idB+".log", nil)
	fixture.Write(t, root, "var/log/containers/a_b_c-"+idB[:63]+".log", nil)
	serve(t, root, func(context.Context) (*api.ListPodResourcesResponse, error) {
		return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{pod("ml", "other", "o", gpuA)}}, nil
	})
	program(t, root, 7, 5, "/kubepods/burstable/pod"+podA+"/"+idA, "/x", 0)
	program(t, root, 8, 5, "/kubepods/burstable/pod"+podA+"/"+idB, "/x", 0)
	program(t, root, 9, 5, "/docker/"+idB, "/x", 0)
	f := New(root, Options{})
	defer f.Close()
	f.Of(7, gpuA)
	f.pods.asking.Wait(time.Minute)
	waitAll(f)
	f.known[7].again = time.Time{}
	want := Identity{[]Attribute{
		{"container.id", idA, false}, {"k8s.container.name", "trainer", false}, {"k8s.namespace.name", "research", false},
		{"k8s.pod.name", "train-0.x", false}, {"k8s.pod.uid", podA, false}, {"process.executable.name", "x", false},
		{"process.owner", "0", false}}, "train-0.x", "0", Pod, locate.Unknown}
	if diff := cmp.Diff(want, f.Of(7)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := f.Of(8, gpuA).Name; got != "other" {
		t.Errorf("without a log: got %q, want the pod of its GPU", got)
	}
	if got := f.Of(9, gpuA).Name; got != "container "+idB[:12] {
		t.Errorf("in no pod: got %q, want no pod", got)
	}
	// What others may write is not believed.
	if err := os.Chmod(filepath.Join(root, "var/log/containers"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got := logged(root); len(got) != 0 {
		t.Errorf("a folder of all users: got %v, want nothing", got)
	}
}

// A kubelet that hangs, fails or answers too much ends nothing.
func TestBadKubelets(t *testing.T) {
	for name, list := range map[string]func(context.Context) (*api.ListPodResourcesResponse, error){
		"hangs": func(ctx context.Context) (*api.ListPodResourcesResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"fails": func(context.Context) (*api.ListPodResourcesResponse, error) { return nil, os.ErrInvalid },
		"answers nothing": func(context.Context) (*api.ListPodResourcesResponse, error) {
			return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{{}, nil}}, nil
		},
		"answers 16 MiB": func(context.Context) (*api.ListPodResourcesResponse, error) {
			return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{
				pod("ml", "train-0", "trainer", gpuA), pod(strings.Repeat("n", 16<<20), "x", "y")}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := shortRoot(t)
			serve(t, root, list)
			p := pods{root: root, socket: filepath.Join(root, podResourcesSocket), given: map[podName]claimant{}}
			began := time.Now()
			p.of("u", idA, []string{gpuA})
			if took := time.Since(began); took > askTimeout/2 {
				t.Errorf("an answer took %v, want that it does not wait", took)
			}
			p.asking.Wait(time.Minute)
			if took := time.Since(began); took > askTimeout+10*time.Second {
				t.Errorf("asking took %v, want %v", took, askTimeout)
			}
			if got, known := p.of("u", idA, []string{gpuA}); known {
				t.Errorf("got %+v, want no name", got)
			}
		})
	}
	p := pods{root: "/nowhere", socket: "/nowhere", given: map[podName]claimant{}}
	if got := p.list(); got != nil {
		t.Errorf("without a socket: got %v, want nothing", got)
	}
}

func TestOwnersAreBounded(t *testing.T) {
	answer := &api.ListPodResourcesResponse{}
	for i := range 2 * maxDevices {
		id := "GPU-" + strings.Repeat("0", i%7) + string(rune('a'+i%26)) + "-" + time.Duration(i).String()
		answer.PodResources = append(answer.PodResources, pod("ns", "p"+time.Duration(i).String(), "c", id, gpuA))
	}
	found := owners(answer, nil)
	if len(found) > maxDevices || len(found[gpuA]) != maxOwners {
		t.Errorf("got %d GPUs and %d containers of one, want at most %d and %d",
			len(found), len(found[gpuA]), maxDevices, maxOwners)
	}
}

// A server of another user is not the kubelet.
func TestForeignKubelet(t *testing.T) {
	root := shortRoot(t)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	called := false
	foreign(t, root, func() {
		serve(t, root, func(context.Context) (*api.ListPodResourcesResponse, error) {
			called = true
			return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{pod("ml", "fake", "c", gpuA)}}, nil
		})
	})
	p := pods{root: root, socket: filepath.Join(root, podResourcesSocket)}
	if got := p.list(); got != nil || called {
		t.Errorf("got %v, want that it is not asked", got)
	}
}

func FuzzLog(f *testing.F) {
	f.Add("train-0_research_trainer-" + idA + ".log")
	f.Add("a_b_c-" + idA)
	f.Fuzz(func(t *testing.T, name string) {
		id, of, ok := parseLog(name)
		if ok && (of.pod+"_"+of.namespace+"_"+of.container+"-"+id+".log" != name || len(id) != 64) {
			t.Errorf("%q: got %q, %+v", name, id, of)
		}
	})
}
