package identity

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// Off is the Options.PodResources that asks no kubelet.
const Off = "off"

// The kubelet's files on a node.
const (
	podResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	containerLogs      = "/var/log/containers"
)

const (
	askEvery    = 10 * time.Second
	askTimeout  = 2 * time.Second
	maxAnswer   = 4 << 20 // bytes; a node has a few hundred pods
	maxDevices  = 4096
	maxLogs     = 1 << 14
	maxOwners   = 64 // of one GPU that several containers share
	maxPods     = 4096
	lastsFor    = 2 * time.Minute // an assignment that no process confirms
	nvidiaClaim = "gpu.nvidia.com"
)

// podName is what a container is called in Kubernetes.
type podName struct{ namespace, pod, container string }

// pods are the names of containers, which cgroups do not have. The kubelet knows them:
//
//   - It makes a link NAME_NAMESPACE_CONTAINER-ID.log for each container's log. Its ID is that of the cgroup, so it is
//     exact.
//   - Its PodResources service (KEP-606) says which pod has which devices, by the device plugin or by claims (DRA). It
//     has neither IDs of containers nor UIDs of pods. So a process has the name of the pod that its GPU was given to,
//     unless several pods have that GPU, or the processes of several pods use it.
//
// Only root may have made the link and may serve the socket.
type pods struct {
	root, socket string // socket is "" to ask none

	asking sample.Tasks

	mu         sync.Mutex           // guards the fields below
	busy       bool                 // the kubelet is asked now
	last       time.Time            // when the kubelet was asked
	containers map[string]podName   // by ID
	devices    map[string][]podName // by a GPU's UUID
	given      map[podName]claimant // who uses the GPUs of a pod
}

// claimant is the pod in which the GPUs of a named pod are used.
type claimant struct {
	uid  string
	seen time.Time
	not  time.Time // when another pod used the same GPUs
}

// of returns the names of a pod's container with these GPUs. It does not wait for the kubelet: if the answer is old, it
// asks in the background.
func (p *pods) of(uid, container string, gpus []string) (name podName, known bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() || now.Sub(p.last) >= askEvery {
		p.last = now
		p.busy = p.busy || p.asking.Start(p.ask)
	}
	if name, known = p.containers[container]; known {
		return name, true
	}
	if name = p.holder(gpus); name.pod == "" {
		return podName{}, false
	}
	pod := podName{namespace: name.namespace, pod: name.pod}
	c, taken := p.given[pod]
	switch {
	case taken && c.uid != uid && now.Sub(c.seen) < lastsFor:
		c.not = now
	case !taken && len(p.given) >= maxPods:
		return podName{}, false
	default:
		c.uid, c.seen = uid, now
	}
	p.given[pod] = c
	if !c.not.IsZero() && now.Sub(c.not) < lastsFor {
		return podName{}, false
	}
	return name, true
}

// holder returns the one pod that all these GPUs were given to.
func (p *pods) holder(gpus []string) (only podName) {
	for _, gpu := range gpus {
		for _, owner := range p.devices[gpu] {
			switch {
			case only.pod == "":
				only = owner
			case only.namespace != owner.namespace || only.pod != owner.pod:
				return podName{}
			case only.container != owner.container:
				only.container = "" // which of them is not known
			}
		}
	}
	return only
}

// ask asks the kubelet.
func (p *pods) ask() {
	var containers map[string]podName
	var devices map[string][]podName
	failed := sample.Protect(func() { containers, devices = logged(p.root), p.list() })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy = false; failed != nil {
		return // counted there
	}
	p.containers, p.devices = containers, devices
	for pod, c := range p.given {
		if time.Since(c.seen) > lastsFor {
			delete(p.given, pod)
		}
	}
}

// logged reads the links to containers' logs.
func logged(root string) map[string]podName {
	path := filepath.Join(root, containerLogs)
	if trust.Folder(path) != nil {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(maxLogs) // names before an error are valid
	found := make(map[string]podName, len(names))
	for _, name := range names {
		if id, of, ok := parseLog(name); ok {
			found[id] = of
		}
	}
	return found
}

// parseLog parses NAME_NAMESPACE_CONTAINER-ID.log. A name that was too long for a file has lost its end.
func parseLog(name string) (id string, of podName, ok bool) {
	name, ok = strings.CutSuffix(name, ".log")
	at := strings.LastIndexByte(name, '-')
	if !ok || at < 0 || locate.ContainerID(name[at+1:]) == "" {
		return "", podName{}, false
	}
	parts := strings.Split(name[:at], "_")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return "", podName{}, false
	}
	return name[at+1:], podName{pod: parts[0], namespace: parts[1], container: parts[2]}, true
}

// list asks which container has which GPU. It returns none without an answer in time.
func (p *pods) list() map[string][]podName {
	if p.socket == "" {
		return nil
	}
	if _, err := os.Stat(p.socket); err != nil {
		return nil
	}
	client, err := grpc.NewClient("passthrough:///kubelet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return trust.Dial(ctx, p.socket) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithNoProxy())
	if err != nil {
		return nil
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	answer, err := api.NewPodResourcesListerClient(client).List(ctx, &api.ListPodResourcesRequest{})
	if err != nil {
		return nil
	}
	return owners(answer, minors(p.root))
}

// owners lists the containers by the GPUs that they have. minors are the UUIDs of GPUs by their minor numbers.
func owners(answer *api.ListPodResourcesResponse, minors map[string]string) map[string][]podName {
	found := make(map[string][]podName)
	add := func(gpu string, of podName) {
		known, listed := found[gpu]
		full := !listed && len(found) >= maxDevices || len(known) >= maxOwners
		if gpu != "" && of.pod != "" && !full && !slices.Contains(known, of) {
			found[gpu] = append(known, of)
		}
	}
	for _, pod := range answer.GetPodResources() {
		for _, c := range pod.GetContainers() {
			of := podName{clean(pod.GetNamespace(), maxValue), clean(pod.GetName(), maxValue), clean(c.GetName(), maxValue)}
			for _, d := range c.GetDevices() {
				for _, id := range d.GetDeviceIds() {
					add(uuidOf(id), of)
				}
			}
			for _, d := range c.GetDynamicResources() {
				for _, r := range d.GetClaimResources() {
					if r.GetDriverName() == nvidiaClaim {
						add(minors[r.GetDeviceName()], of)
					}
				}
			}
		}
	}
	return found
}

// uuidOf returns the UUID of a GPU or MIG slice in the ID of a device plugin's device, or "". A GPU that is shared has
// devices GPU-...::0, ::1 and so on.
func uuidOf(device string) string {
	device, _, _ = strings.Cut(device, "::")
	if len(device) <= maxKey && (strings.HasPrefix(device, "GPU-") || strings.HasPrefix(device, "MIG-")) {
		return device
	}
	return ""
}

// minors returns the UUIDs of GPUs by their names in claims, gpu-MINOR, from the driver's files.
func minors(root string) map[string]string {
	files, _ := filepath.Glob(filepath.Join(root, "/proc/driver/nvidia/gpus/*/information"))
	found := make(map[string]string, len(files))
	for _, file := range files[:min(len(files), maxOwners)] {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var uuid, minor string
		for line := range strings.Lines(string(text)) {
			switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
			case "GPU UUID":
				uuid = uuidOf(strings.TrimSpace(value))
			case "Device Minor":
				minor = number(strings.TrimSpace(value))
			}
		}
		if uuid != "" && minor != "" {
			found["gpu-"+minor] = uuid
		}
	}
	return found
}
