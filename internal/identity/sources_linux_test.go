package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/test/fixture"
)

// Where two sources of a row in docs/agent.md know an answer, the first one wins. Other rows: TestOf, TestClaims,
// TestPodsByLogs, TestUsersOfServices and TestUsersBelowRoot.
func TestFirstSourceWins(t *testing.T) {
	root := shortRoot(t)
	serve(t, root, func(context.Context) (*api.ListPodResourcesResponse, error) {
		return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{pod("ml", "train-0", "trainer", gpuA)}}, nil
	})
	program(t, root, 7, 5, "/kubepods/pod"+podA+"/"+idA, "/x", 0)
	fixture.Write(t, root, "proc/7/environ", environ("OTEL_SERVICE_NAME=named", "OTEL_RESOURCE_ATTRIBUTES="+
		"service.name=other,k8s.pod.name=mine,k8s.namespace.name=mine,k8s.container.name=mine"))
	f := New(root, Options{})
	defer f.Close()
	for range 2 { // the kubelet and the environment are asked in the background
		f.Of(7, gpuA)
		f.pods.asking.Wait(time.Minute)
		waitAll(f)
		f.known[7].again = time.Time{}
	}
	got := f.Of(7, gpuA)
	for _, want := range []Attribute{
		{"k8s.pod.name", "train-0", false}, {"k8s.namespace.name", "ml", false}, {"k8s.container.name", "trainer", false},
		{"service.name", "named", true},
	} {
		if !has(got, want.Key, want.Value, want.Claimed) {
			t.Errorf("got %+v, want %+v", got.Attributes, want)
		}
	}
}

// started runs a program until the test ends.
func started(t *testing.T, variables ...string) (pid int) { return titled(t, "cat", variables...) }

// titled runs a program with that title until the test ends.
func titled(t *testing.T, title string, variables ...string) (pid int) {
	t.Helper()
	cmd := exec.Command("cat") // waits for the end of its input
	cmd.Args[0] = title
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, variables...)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Skipf("needs cat: %v", err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// A process in real cgroups (v2) by the names that slurmd's plugin cgroup/v2 gives them: with the number of the job,
// and since 26.05 with its SLUID, where the title of the step's slurmstepd has the number. Slurm 22.05 itself does not
// start with that plugin where a hierarchy of v1 is mounted, too. make slurm-test runs it with the plugin cgroup/v1.
func TestSlurmInCgroupV2(t *testing.T) {
	point, err := cgroup.Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	top := fmt.Sprintf("stallspan-slurm-%d", os.Getpid())
	group := func(path string) string {
		for at, above := "", strings.Split(path, "/"); len(above) > 0; above = above[1:] {
			at = filepath.Join(at, above[0])
			folder := filepath.Join(point, at)
			if err := os.Mkdir(folder, 0o755); errors.Is(err, fs.ErrExist) {
				continue
			} else if err != nil {
				t.Skipf("needs root, to make a cgroup: %v", err)
			}
			t.Cleanup(func() {
				for end := time.Now().Add(10 * time.Second); os.Remove(folder) != nil && time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		return filepath.Join(point, path)
	}
	enter := func(folder string, pid int) {
		if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Skipf("needs the right to move a process: %v", err)
		}
	}
	for _, test := range []struct{ folder, title, claimed, job, sluid, named string }{
		{"slurmstepd.scope/job_4711", "", "4711", "4711", "", "tune"},
		{"slurmstepd.scope/job_4711", "", "9", "4711", "", ""},
		{"slurmstepd.scope/s5K1KKYAYG5D00", "slurmstepd: [4712.0]", "4712", "4712", "s5K1KKYAYG5D00", "tune"},
		{"slurmstepd.scope/s5K1KKYAYG5D01", "slurmstepd: [4712.0 stepmgr]", "9", "4712", "s5K1KKYAYG5D01", ""},
		{"n1_slurmstepd.scope/s5K1KKYAYG5D02", "x", "", "", "s5K1KKYAYG5D02", ""},
	} {
		step := filepath.Join(top, test.folder, "step_0")
		user := group(filepath.Join(step, "user", "task_0"))
		if test.title != "" {
			enter(group(filepath.Join(step, "slurm")), titled(t, test.title))
		}
		pid := started(t, "SLURM_JOB_ID="+test.claimed, "SLURM_STEP_ID=7", "SLURM_JOB_NAME=tune")
		enter(user, pid)
		got := afterwards(pid, filepath.Base(programOf("/proc", pid)))
		if got.Kind != Slurm || got.Name != "job "+cmp.Or(test.job, test.sluid) || !has(got, "slurm.step.id", "0", false) ||
			has(got, "slurm.job.id", test.job, false) != (test.job != "") ||
			has(got, "slurm.sluid", test.sluid, false) != (test.sluid != "") ||
			has(got, "slurm.job.name", "tune", true) != (test.named != "" || test.job == "") {
			t.Errorf("%s of %q with the claim %q: got %+v, want its job %q, named %q",
				test.folder, test.title, test.claimed, got, test.job, test.named)
		}
	}
}

// A rootless container of podman. Without a systemd of its user, podman makes no cgroup for it, so that it has no ID.
// Its user is that of the machine, also for its root.
func TestRootlessPodman(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become a user with subordinate IDs")
	}
	if _, err := exec.LookPath("newuidmap"); err != nil {
		t.Skip("needs newuidmap: apt-get install uidmap")
	}
	text, _ := os.ReadFile("/etc/subuid")
	name, _, _ := strings.Cut(string(text), ":")
	of, err := user.Lookup(name)
	if err != nil || of.Uid == "0" {
		t.Skipf("needs an ordinary user in /etc/subuid: %v", err)
	}
	root := image(t)
	folder := filepath.Dir(root)
	if err := errors.Join(os.Mkdir(folder+"/home", 0o700), os.Mkdir(folder+"/run", 0o700)); err != nil {
		t.Fatal(err)
	}
	command(t, true, "chown", "-R", name, folder)
	as := []string{"-u", name, "--", "env", "-i", "-C", folder, "PATH=" + os.Getenv("PATH"), "HOME=" + folder + "/home",
		"XDG_RUNTIME_DIR=" + folder + "/run", "podman", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
		"--storage-driver", "vfs"}
	if _, err := exec.LookPath("runc"); err == nil {
		as = append(as, "--runtime", "runc")
	}
	podman := func(more ...string) []string { return append(as[:len(as):len(as)], more...) }
	t.Cleanup(func() {
		_ = exec.Command("runuser", podman("rm", "--force", "--time", "0", "job")...).Run()
		_ = exec.Command("runuser", podman("system", "migrate")...).Run() // ends the process that keeps the namespace
	})
	command(t, false, "runuser", podman("run", "--detach", "--network", "none", "--ulimit", "nofile=1024:1024",
		"--ulimit", "nproc=1024:1024", "--env", "RANK=3", "--name", "job", "--rootfs", root, "/sleep")...)
	number := command(t, true, "runuser", podman("inspect", "--format", "{{.State.Pid}}", "job")...)
	lines := strings.Split(number, "\n") // podman may warn before
	pid, err := strconv.Atoi(lines[len(lines)-1])
	if err != nil {
		t.Fatalf("got %q, want the number of a process: %v", number, err)
	}
	got := afterwards(pid, "sleep")
	if got.User != name || !has(got, "process.owner", name, false) ||
		!has(got, "process.executable.name", "sleep", false) || !has(got, "nv.dl.rank", "3", true) {
		t.Errorf("got %+v, want rank 3 of %s", got, name)
	}
	for _, a := range got.Attributes {
		if a.Key == "container.id" && !a.Claimed {
			t.Errorf("got %+v, want a rootless container's ID as a claim, if any", a)
		}
	}
}
