package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sleeping is a program that needs no files.
const sleeping = `package main

import "time"

func main() { time.Sleep(time.Hour) }
`

// image makes the files of a container with one program, /sleep.
func image(t *testing.T) string {
	t.Helper()
	folder := shortRoot(t)
	root := filepath.Join(folder, "root")
	if err := errors.Join(os.Mkdir(root, 0o755), os.WriteFile(folder+"/sleep.go", []byte(sleeping), 0o600)); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", root+"/sleep", folder+"/sleep.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Skipf("needs go: %v: %s", err, text)
	}
	return root
}

// command runs a program and returns what it prints. The test is skipped if the first one of a kind fails: few machines
// let a container be started in a container.
func command(t *testing.T, required bool, name string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	switch {
	case err != nil && required:
		t.Fatalf("%s %v: got %v, want that it works: %s", name, arguments, err, text)
	case err != nil:
		t.Skipf("needs root and %s: %v: %.300s", name, err, text)
	}
	return strings.TrimSpace(string(text))
}

// afterwards returns who a process is, once runc has started that program in it.
func afterwards(pid int, program string) (got Identity) {
	f := New("/", Options{PodResources: Off})
	defer f.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got = f.Of(pid)
		waitAll(f)
		if got = f.Of(pid); has(got, "process.executable.name", program, false) {
			return got
		}
	}
	return got
}

// A container of podman.
func TestPodman(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	root := image(t)
	folder := filepath.Dir(root)
	podman := []string{"--root", folder + "/storage", "--runroot", folder + "/run", "--cgroup-manager", "cgroupfs",
		"--events-backend", "none", "--storage-driver", "vfs"} // overlay leaves a mount
	if _, err := exec.LookPath("runc"); err == nil {
		podman = append(podman, "--runtime", "runc")
	}
	with := func(more ...string) []string { return slices.Concat(podman, more) }
	t.Cleanup(func() {
		_ = exec.Command("podman", with("rm", "--force", "--time", "0", "job")...).Run()
	})
	id := command(t, false, "podman", with("run", "--detach", "--network", "none", "--ulimit", "nofile=4096:4096",
		"--ulimit", "nproc=4096:4096", "--env", "RANK=3", "--name", "job", "--rootfs", root, "/sleep")...)
	pid, err := strconv.Atoi(command(t, true, "podman", with("inspect", "--format", "{{.State.Pid}}", "job")...))
	if err != nil {
		t.Fatal(err)
	}
	got := afterwards(pid, "sleep")
	if !has(got, "container.id", id, false) || got.Kind != Container || got.User != "root" ||
		!has(got, "process.executable.name", "sleep", false) || !has(got, "nv.dl.rank", "3", true) {
		t.Errorf("got %+v, want the container %s with rank 3", got, id)
	}
}

// A container of containerd, in the cgroup of a pod as the kubelet makes it.
func TestContainerd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		t.Skip("needs containerd")
	}
	root := image(t)
	folder := filepath.Dir(root)
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"+
		"[grpc]\n  address = %q\n", folder+"/containerd", folder+"/state", folder+"/c.sock")
	if err := os.WriteFile(folder+"/containerd.toml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(path, "--config", folder+"/containerd.toml")
	if err := server.Start(); err != nil {
		t.Skipf("needs containerd: %v", err)
	}
	ctr := func(arguments ...string) []string {
		return append([]string{"--address", folder + "/c.sock"}, arguments...)
	}
	top := fmt.Sprintf("stallspan-test-%d", os.Getpid()) // a kubelet may own /kubepods
	group := "/" + top + "/kubepods/burstable/pod" + podA
	id := fmt.Sprintf("%064x", os.Getpid())
	t.Cleanup(func() {
		_ = exec.Command("ctr", ctr("task", "rm", "--force", id)...).Run()
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		_ = exec.Command("sh", "-c", "for d in /sys/fs/cgroup/$0 /sys/fs/cgroup/*/$0; do "+
			"find $d -depth -type d -exec rmdir {} + ; done", top).Run()
	})
	for end := time.Now().Add(time.Minute); exec.Command("ctr", ctr("version")...).Run() != nil; {
		if time.Sleep(100 * time.Millisecond); time.Now().After(end) {
			t.Skip("needs a containerd that starts")
		}
	}
	command(t, false, "ctr", ctr("run", "--detach", "--rootfs", "--cgroup", group+"/"+id, "--env", "LOCAL_RANK=1",
		root, id, "/sleep")...)
	var pid int
	for line := range strings.Lines(command(t, true, "ctr", ctr("task", "ls")...)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == id {
			pid, _ = strconv.Atoi(fields[1])
		}
	}
	got := afterwards(pid, "sleep")
	if !has(got, "container.id", id, false) || !has(got, "k8s.pod.uid", podA, false) || got.Kind != Pod ||
		got.Name != "pod "+podA || !has(got, "nv.dl.local_rank", "1", true) {
		t.Errorf("got %+v of process %d, want the container %s of the pod %s", got, pid, id, podA)
	}
}
