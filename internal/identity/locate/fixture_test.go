package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

func machineOf(t testing.TB, name string) string {
	t.Helper()
	return fixture.Root(t, "locate_"+name)
}

// Containers of the fixtures.
var (
	idA  = hereID
	idB  = "4f1c6d0b4f1c" + strings.Repeat("9e", 26)
	idC  = strings.Repeat("d3a9", 16)
	idD  = strings.Repeat("07be5512", 8)
	idP  = strings.Repeat("aa00bb11", 8)
	pod  = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7b6f3ad1_1c2e_4e0a_9d53_0a4e5d1f9b11.slice"
	user = "/user.slice/user-1000.slice/user@1000.service/user.slice"
)

func TestPlaces(t *testing.T) {
	type span struct {
		w    Who
		want Place
	}
	within := func(id string, pid int) Who { return Who{ContainerID: id, PID: pid} }
	named := func(pid int) Who { return Who{HostName: "gpu1", PID: pid} }
	scope := "/system.slice/docker-" + idA + ".scope"
	for machine, spans := range map[string][]span{
		"docker_v2": {
			{within(idA, 0), Place{4200, scope, true}}, // the first, though 4150 has the lower number
			{within(idA, 1), Place{4200, scope, true}},
			{within(idA, 7), Place{4300, scope, true}}, // in a group below; the container's own is what counts
			{within(idB, 7), Place{5202, "/system.slice/docker-" + idB + ".scope", true}},
			{within(idA, 4300), Place{4200, scope, true}}, // 4300 is another's number for it
			{within(idA, 99), Place{4200, scope, true}},   // it has ended: the container
			{within(idA, -7), Place{4200, scope, true}},
			{named(1700), Place{PID: 1700}},            // though one in a container goes by 1700, too
			{Who{PID: 1700}, Place{}},                  // which of the two is not said
			{Who{PID: 900}, Place{PID: 900}},           // no other is called so
			{Who{PID: 7}, Place{}},                     // two are, each in a container
			{Who{PID: 6}, Place{}},                     // one is, in a container
			{named(7), Place{}},                        // none of the host's
			{named(57), Place{}},                       // a kernel thread
			{named(1), Place{}},                        // the machine's init
			{named(4200), Place{}},                     // knows itself as 1
			{named(1 << 40), Place{}},                  // no process
			{named(-1), Place{}},                       //
			{within(idA[:11], 7), Place{}},             // too short
			{within("../../"+idA, 1700), Place{}},      // no ID
			{within(strings.ToUpper(idA), 0), Place{}}, // nor this
			{within(strings.Repeat("a", 1<<20), 7), Place{}},
		},
		"docker_v1": {
			{within(idA, 0), Place{PID: 4200}},
			{within(idA, 9), Place{PID: 4201}},
			{within(idA[:12], 9), Place{PID: 4201}},
			{named(900), Place{PID: 900}},
		},
		"containerd_hybrid": {
			{within(idP, 0), Place{3000, pod + "/cri-containerd-" + idP + ".scope", true}},
			// The first thread has ended, the others have not.
			{within(idC, 0), Place{3100, pod + "/cri-containerd-" + idC + ".scope", true}},
			{within(idD, 1), Place{PID: 3300}}, // in the root of the v2 tree
			{within(idD[:12], 0), Place{PID: 3300}},
		},
		"kubepods_v2": {
			{within(idC, 1), Place{3100, "/kubepods/besteffort/pod7b6f3ad1-1c2e-4e0a-9d53-0a4e5d1f9b11/" + idC, true}},
		},
		"crio_v2": {
			{within(idC, 0), Place{3100, pod + "/crio-" + idC + ".scope", true}}, // and not conmon
			{within(idC, 3090), Place{3100, pod + "/crio-" + idC + ".scope", true}},
		},
		"podman_v2": {
			{within(idC, 0), Place{3100, user + "/libpod-" + idC + ".scope", true}},
			{within(idD, 0), Place{3200, "/system.slice/serve.service/libpod-payload-" + idD, true}},
			{within(idA, 3300), Place{3300, user + "/libpod-" + idA + ".scope", true}}, // it has the host's pids
		},
		"nested": {
			{within(idA, 7), Place{6007, "/docker/" + idA, true}},
			{within(idC, 7), Place{6101, "/docker/" + idA + "/docker/" + idC, true}},
			{within(idC, 0), Place{6100, "/docker/" + idA + "/docker/" + idC, true}},
			{within(idA, 9), Place{6102, "/docker/" + idA, true}},
		},
		"in_container": {
			{Who{HostName: "web-5d9c", PID: 14}, Place{PID: 14}},
			{Who{HostName: "web-5d9c", PID: 1}, Place{}}, // any container's first process
			{Who{HostName: "web-5d9c", PID: 15}, Place{}},
			{Who{HostName: "web-5d9c", ContainerID: idA, PID: 14}, Place{}},
			{Who{PID: 14}, Place{PID: 14}},
		},
		"host_proc": {
			{Who{PID: 7}, Place{PID: 4207}}, // in our namespace
			{Who{PID: 8}, Place{}},          // in another
			{Who{PID: 9}, Place{}},          // in both
			{within(idC, 8), Place{PID: 4308}},
			{within(idC, 9), Place{PID: 4310}},
			{named(7), Place{PID: 4207}},
		},
	} {
		t.Run(machine, func(t *testing.T) {
			root := machineOf(t, machine)
			l := New(root, "", true)
			for _, again := range []string{"", " again"} {
				for _, s := range spans {
					if got, _ := l.Find(s.w); got != s.want {
						t.Errorf("%.200s%s: %+v, want %+v", fmt.Sprintf("%+v", s.w), again, got, s.want)
					}
				}
			}
			for _, s := range spans {
				if got, _ := New(root, "", true).Find(s.w); got != s.want {
					t.Errorf("%.200s alone: %+v, want %+v", fmt.Sprintf("%+v", s.w), got, s.want)
				}
			}
		})
	}
}

// In a container with the host's cgroups below root, other containers are found, and so is our own.
func TestPlacesInTheHostsTree(t *testing.T) {
	root, ours := machineOf(t, "host_proc"), filepath.Join(t.TempDir(), "cgroup")
	own := "/kubepods.slice/pod1/cri-containerd-" + idA + ".scope"
	other := "/kubepods.slice/pod9/cri-containerd-" + idC + ".scope"
	for _, group := range []string{own, other} {
		fixture.Write(t, root, "sys/fs/cgroup"+group+"/cgroup.procs", nil)
	}
	if err := os.Symlink(root+"/sys/fs/cgroup"+own, ours); err != nil { // for the mount of our own cgroup
		t.Fatal(err)
	}
	fixture.Write(t, root, "proc/self/mountinfo", []byte("30 24 0:26 / "+ours+" ro - cgroup2 cgroup rw\n"+
		"90 24 0:26 /../../.. "+root+"/sys/fs/cgroup ro - cgroup2 cgroup rw\n"))
	l := New(root, "", true)
	for w, want := range map[Who]Place{
		{ContainerID: idC, PID: 8}:      {4308, other, true},
		{ContainerID: idC, PID: 9}:      {4310, other, true},
		{ContainerID: idA, PID: 7}:      {4207, own, true},
		{ContainerID: idA[:12], PID: 7}: {4207, own, true},
		{HostName: idA[:12], PID: 7}:    {4207, own, true},
		{PID: 7}:                        {PID: 4207},
		{ContainerID: idB, PID: 8}:      {},
	} {
		if got, _ := l.Find(w); got != want {
			t.Errorf("%+v: got %+v, want %+v", w, got, want)
		}
	}
}

// A path that leaves the tree, or that no kernel prints, is not a cgroup.
func TestPathsThatLeadOut(t *testing.T) {
	name := "/docker-" + idA + ".scope"
	for seen, want := range map[string]string{
		name:               "/a/b" + name,
		"/.." + name:       "/a" + name,
		"/../.." + name:    name,
		"/../../.." + name: "",
		"/x/../.." + name:  "",
		"//x" + name:       "",
	} {
		if got, ok := within([]byte("0::"+seen+"\n"), "/a/b", idA); got != want || !ok {
			t.Errorf("%s: got %q, %v, want %q, true", seen, got, ok, want)
		}
	}
}

// The first digits of two container IDs identify neither.
func TestShortIDs(t *testing.T) {
	l := New(machineOf(t, "docker_v2"), "", false)
	if p, local := l.Find(Who{ContainerID: idA[:12]}); local || p != (Place{}) {
		t.Errorf("got %+v, %v, want no place, false", p, local)
	}
	l = New(machineOf(t, "docker_v1"), "", false)
	if p, local := l.Find(Who{ContainerID: idA[:12]}); !local || p.PID != 4200 {
		t.Errorf("got %+v, %v, want process 4200, true", p, local)
	}
}

func TestNothingToRead(t *testing.T) {
	l := New(t.TempDir(), "", false)
	for _, w := range []Who{{PID: 7}, {HostName: l.us.name, PID: 7}, {HostName: l.us.name, PID: 7, ContainerID: idA}} {
		if p, local := l.Find(w); !local || p != (Place{}) {
			t.Errorf("%+v: got %+v, %v, want no place, true", w, p, local)
		}
	}
	if _, local := l.Find(Who{ContainerID: idA}); local {
		t.Error("a container was found without /proc, want none")
	}
}
