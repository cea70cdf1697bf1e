package identity

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	idA    = strings.Repeat("4f1c6d0b", 8)
	idB    = strings.Repeat("07be5512", 8)
	podA   = "7b6f3ad1-1c2e-4e0a-9d53-0a4e5d1f9b11"
	podA1  = strings.ReplaceAll(podA, "-", "_")
	static = "0e6a1f6c7f9b4d5d8d2c3b4a59687766"
)

// full puts IDs into a path.
var full = strings.NewReplacer("{A}", idA, "{B}", idB, "{pod}", podA, "{pod_}", podA1, "{static}", static).Replace

// below is what belongs to a user.
const below = "/user.slice/user-1000.slice/user@1000.service"

// Paths as container managers, the kubelet, Slurm and systemd make them.
func TestParsePath(t *testing.T) {
	for path, want := range map[string]place{
		// The kubelet with its driver systemd, with containerd and CRI-O.
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/cri-containerd-{A}.scope":   {pod: podA, container: idA},
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{pod_}.slice/cri-containerd-{A}.scope": {pod: podA, container: idA},
		"/kubepods.slice/kubepods-pod{pod_}.slice/cri-containerd-{A}.scope":                                      {pod: podA, container: idA},
		"/kubepods.slice/kubepods-pod{pod_}.slice/crio-{A}.scope/container":                                      {pod: podA, container: idA},
		"/kubepods.slice/kubepods-pod{static}.slice/cri-containerd-{A}.scope":                                    {pod: static, container: idA},
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{pod_}.slice/cri-containerd-{A}.scope":        {pod: podA, container: idA},
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_}.slice/crio-conmon-{A}.scope": {
			pod: podA, unit: "crio-conmon-" + idA + ".scope"},
		// With its driver cgroupfs.
		"/kubepods/burstable/pod{pod}/{A}":  {pod: podA, container: idA},
		"/kubepods/besteffort/pod{pod}/{A}": {pod: podA, container: idA},
		"/kubepods/pod{pod}/crio-{A}":       {pod: podA, container: idA},
		"/kubepods/pod{pod}":                {pod: podA},
		"/node/kubepods/pod{pod}/{A}":       {pod: podA, container: idA},
		// Containerd and the kubelet disagree about the driver.
		"/system.slice/containerd.service/kubepods-burstable-pod{pod_}.slice:cri-containerd:{A}": {
			pod: podA, container: idA, unit: "containerd.service"},

		// Other containers.
		"/system.slice/docker-{A}.scope":                 {container: idA},
		"/docker/{A}":                                    {container: idA},
		"/docker/{A}/docker/{B}":                         {container: idA},
		"/machine.slice/libpod-{A}.scope/container":      {container: idA},
		"/libpod_parent/libpod-{A}":                      {container: idA},
		"/system.slice/serve.service/libpod-payload-{A}": {container: idA, unit: "serve.service"},
		"/default/{A}":                                   {container: idA},
		below + "/user.slice/libpod-{A}.scope/container": {
			container: idA, own: true, unit: "user@1000.service"},
		below + "/app.slice/web.service/libpod-payload-{A}": {
			container: idA, own: true, unit: "user@1000.service", userUnit: "web.service"},

		// Slurm.
		"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0":     {job: "4711", step: "0"},
		"/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0": {job: "4711", step: "batch"},
		"/system.slice/slurmstepd.scope/job_4711/step_interactive/slurm": {job: "4711", step: "interactive"},
		"/system.slice/n1_slurmstepd.scope/job_4711/step_extern/user":    {job: "4711", step: "extern"},
		"/system.slice/slurmstepd.scope/system":                          {},
		"/system.slice/slurmstepd.scope/slurmd":                          {},
		"/system.slice/slurmstepd.scope/job_4711/step_3+1/user/task_0":   {job: "4711", step: "3+1"},
		"/system.slice/slurmstepd.scope/job_4711/step_3+/user/task_0":    {job: "4711"},
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0": {
			sluid: "s5K1KKYAYG5D00", step: "0", stepd: "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/slurm"},
		"/system.slice/n1_slurmstepd.scope/sEKNKTV3WPV500/step_batch/slurm": {
			sluid: "sEKNKTV3WPV500", step: "batch", stepd: "/system.slice/n1_slurmstepd.scope/sEKNKTV3WPV500/step_batch/slurm"},
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00":                  {sluid: "s5K1KKYAYG5D00"},
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/sEKNKTV3WPV500":   {sluid: "s5K1KKYAYG5D00"},
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/job_9":            {sluid: "s5K1KKYAYG5D00"},
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5D0/step_0":            {}, // a digit too few
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5DO0/step_0":           {}, // O is no digit of it
		"/system.slice/s5K1KKYAYG5D00/step_0":                            {},
		"/slurm/uid_1000/job_4711/step_0/task_0":                         {job: "4711", step: "0"},
		"/slurm_n1/uid_0/job_5/step_batch":                               {job: "5", step: "batch"},
		"/slurm/uid_1000/job_12345678901/step_0":                         {},
		"/slurm/uid_1000/job_4711/step_../x":                             {job: "4711"},
		"/system.slice/slurmstepd.scope/job_4711/step_0/user/docker/{A}": {job: "4711", step: "0", container: idA},

		// Units.
		"/system.slice/vllm.service":                                    {unit: "vllm.service"},
		"/system.slice/system-jupyter.slice/jupyter@ada.service/kernel": {unit: "jupyter@ada.service"},
		"/user.slice/user-1000.slice/session-3.scope":                   {unit: "session-3.scope"},
		below + "/app.slice/lab.service":                                {unit: "user@1000.service", userUnit: "lab.service"},
		"/init.scope":                                                   {unit: "init.scope"},
		"/machine.slice/machine-a.scope":                                {unit: "machine-a.scope"},
		"/":                                                             {},
		"":                                                              {},

		// What a user, a service or a container's program names is neither a pod nor a job of Slurm.
		below + "/kubepods.slice/kubepods-pod{pod_}.slice/cri-containerd-{A}.scope": {
			container: idA, own: true, unit: "user@1000.service"},
		below + "/kubepods/pod{pod}":             {unit: "user@1000.service"},
		below + "/slurmstepd.scope/job_9/step_0": {unit: "user@1000.service", userUnit: "slurmstepd.scope"},
		below + "/containerd.service/x-kubepods-pod{pod_}.slice:cri-containerd:{A}": {
			container: idA, own: true, unit: "user@1000.service", userUnit: "containerd.service"},
		"/system.slice/lab.service/kubepods/pod{pod}/{A}":                  {container: idA, unit: "lab.service"},
		"/system.slice/lab.service/slurmstepd.scope/s5K1KKYAYG5D00/step_0": {unit: "lab.service"},
		"/system.slice/lab.service/slurm/uid_0/job_9/step_0":               {unit: "lab.service"},
		"/system.slice/docker-{A}.scope/slurmstepd.scope/job_9/step_0":     {container: idA},
		"/system.slice/docker-{A}.scope/kubepods/pod{pod}":                 {container: idA},
		"/ordinary/slurm/uid_0/job_9":                                      {},
		"/ordinary/pod{pod}":                                               {},
		"/kubepods/pod{pod}x":                                              {},
		"/kubepods/podnone":                                                {},
		"/../kubepods/pod{pod}":                                            {},
		strings.Repeat("/a", 40) + "/kubepods/pod{pod}":                    {},
	} {
		if got := parsePath(full(path), maxDepth); got != want {
			t.Errorf("%s:\n got %+v,\nwant %+v", path, got, want)
		}
	}
}

// hidden are the owners of cgroups that are not visible.
func hidden(string, string) (folders int, ok bool) { return 0, false }

// Below a folder that is not root's, names are their user's word, whatever the folders are called.
func TestGivenPlaces(t *testing.T) {
	for path, of := range map[string]struct {
		root int // folders that are root's
		want place
	}{
		"/a/docker-{A}.scope":                                         {0, place{container: idA, own: true}},
		"/b/docker-{A}.scope":                                         {1, place{container: idA, own: true}},
		"/c/docker-{A}.scope":                                         {2, place{container: idA}},
		"/a/kubepods/pod{pod}/{A}":                                    {0, place{container: idA, own: true}},
		"/b/kubepods/pod{pod}/{A}":                                    {2, place{pod: podA, container: idA, own: true}},
		"/system.slice/lab.service/x/{A}":                             {1, place{container: idA, own: true, unit: "lab.service"}},
		"/system.slice/lab.service/x.service":                         {1, place{unit: "lab.service"}},
		"/a/web.service":                                              {0, place{}},
		"/a/slurmstepd.scope/job_9/step_0":                            {0, place{}},
		"/slurm/uid_1000/job_5/step_0/task_0":                         {3, place{job: "5", step: "0"}},
		"/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user":                {1, place{sluid: "s5K1KKYAYG5D00"}},
		"/slurmstepd.scope/s5K1KKYAYG5D00/step_1/user":                {2, place{sluid: "s5K1KKYAYG5D00", step: "1"}},
		"/slurm/uid_1000/job_6/step_0/task_0":                         {1, place{}},
		"/user.slice/user-1000.slice/user@1000.service/a/web.service": {2, place{unit: "user@1000.service", userUnit: "web.service"}},
	} {
		if got := parsePath(full(path), of.root); got != of.want {
			t.Errorf("%s:\n got %+v,\nwant %+v", path, got, of.want)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for text, want := range map[string]place{
		"0::/system.slice/vllm.service\n": {unit: "vllm.service"},
		// A hybrid system: v2 has nothing but the top.
		"12:pids:/\n4:cpu,cpuacct:/slurm_n1/uid_0/job_5/step_batch/task_0\n" +
			"1:name=systemd:/system.slice/slurmd.service\n0::/\n": {
			job: "5", step: "batch", unit: "slurmd.service"},
		"4:memory:/docker/{A}\n0::/system.slice/docker.service\n": {container: idA, unit: "docker.service"},
		"4:memory:/kubepods/pod{pod}/{A}\n":                       {pod: podA, container: idA},
		// Another container's pod is not this one's.
		"4:memory:/kubepods/pod{pod}/{B}\n0::/docker/{A}\n": {container: idA},
		// A container that a user has named gives way to root's.
		"4:memory:/docker/{B}\n0::/user.slice/user-1.slice/user@1.service/{A}\n": {
			container: idB, unit: "user@1.service"},
		"":             {},
		"0::\n::\n:\n": {},
		"x":            {},
	} {
		if got := placeOf([]byte(full(text)), "/", hidden); got != want {
			t.Errorf("%q:\n got %+v,\nwant %+v", text, got, want)
		}
	}
	// In a container, the kernel shows other cgroups relative to its own.
	got := placeOf([]byte(full("0::/../../kubepods-pod{pod_}.slice/cri-containerd-{A}.scope\n")),
		"/kubepods.slice/a.slice/b.scope", hidden)
	if want := (place{pod: podA, container: idA}); got != want {
		t.Errorf("from a container: got %+v, want %+v", got, want)
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(full("12:pids:/slurm_n1/uid_0/job_5/step_batch/task_0\n0::/kubepods/pod"+podA+"/{A}\n"), "/")
	f.Add(full("0::/user.slice/user-1000.slice/user@1000.service/a.service/libpod-{A}.scope\n"), "/")
	f.Add(full("0::/../x.scope/docker-{A}.scope\n"), "/a/b")
	f.Fuzz(func(t *testing.T, text, own string) {
		p := placeOf([]byte(text), "/"+strings.Trim(own, "/"), hidden)
		if p.container != "" && len(p.container) != 64 || p.pod != "" && podUID(p.pod) == "" ||
			p.job != "" && (!isNumber(p.job) || p.sluid != "") || p.step != "" && p.job+p.sluid == "" ||
			p.own && p.container == "" {
			t.Errorf("got %+v from %q", p, text)
		}
		if n := name(&p, func() string { return "x" }); n == "" || !utf8.ValidString(clean(n, maxValue)) {
			t.Errorf("got the name %q from %q", n, text)
		}
	})
}

func TestJobInTitle(t *testing.T) {
	for title, want := range map[string]string{
		"slurmstepd: [91234.0]\x00\x00":      "91234",
		"slurmstepd: [91234.extern stepmgr]": "91234",
		"slurmstepd: [91234.0+1]":            "91234",
		"slurmstepd: [sEKNKTV3WPV500.0]":     "",
		"slurmstepd: [91234]":                "",
		"slurmstepd infinity":                "",
		"/usr/sbin/slurmstepd":               "",
		"sleep: [7.0]":                       "",
		"7.0":                                "",
		"":                                   "",
	} {
		if got := jobInTitle(title); got != want {
			t.Errorf("%q: got %q, want %q", title, got, want)
		}
	}
}
