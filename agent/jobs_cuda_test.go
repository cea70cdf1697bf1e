package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/test/fixture"
)

// cudaRoot returns a root folder with this machine's files and a device of CUDA, which has the number of /dev/random,
// and the device, open.
func cudaRoot(t *testing.T) (root string, device *os.File) {
	t.Helper()
	root = t.TempDir()
	for _, name := range []string{"proc", "sys"} {
		if err := os.Symlink("/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(root, "dev/nvidia-uvm")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 8))); err != nil {
		t.Skip("needs root, to make a device:", err)
	}
	device, err := os.Open(path)
	if err != nil {
		t.Skip("needs a file system with devices:", err)
	}
	return root, device
}

// A program that has the device of CUDA open is a job without a GPU, and the same job once it holds memory of one.
func TestJobThatUsesCUDA(t *testing.T) {
	t.Parallel()
	root, device := cudaRoot(t)
	program := exec.Command("sleep", "600")
	program.ExtraFiles = []*os.File{device}
	err := program.Start()
	_ = device.Close() // else the program's parent uses CUDA, too, and is the job
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	defer func() { _ = program.Process.Kill(); <-ended; close(ended) }()
	pid := program.Process.Pid
	const gpu = "gpu 0 uuid=GPU-0 utilization=40 processes=%s\n"
	player := fixture.PlayGPU(t, fmt.Sprintf(gpu, ""))
	config := filepath.Join(t.TempDir(), "agent.yaml")
	settings := fmt.Sprintf("sampling: {nvml: %q, root_path: %q}\n", fixture.NVML(t), root)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	said, jobs := jobsAgent(t, config, player)
	wait := func(what string, ok func(*api.Job) bool) *api.Job {
		t.Helper()
		var own []api.Job
		for until := time.Now().Add(slowest / 2); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			var all api.Jobs
			if err := json.Unmarshal([]byte(jobs("--json")), &all); err != nil {
				t.Fatal(err)
			}
			own = slices.DeleteFunc(all.Jobs, func(j api.Job) bool { return j.PID != pid })
			if len(own) == 1 && ok(&own[0]) {
				return &own[0]
			}
		}
		t.Fatalf("got %+v of process %d, want one job: %s; it reported %s", own, pid, what, said.String())
		return nil
	}
	before := wait("it runs without a GPU", func(j *api.Job) bool {
		return j.Running && len(j.GPUs) == 0 && j.Allocated > 1
	})
	line := ""
	for one := range strings.Lines(jobs()) {
		if strings.HasPrefix(one, "sleep") {
			line = one
		}
	}
	if words := strings.Fields(line); len(words) < 3 || words[2] != "-" || before.Busy != 0 {
		t.Errorf("got %q, and %v s busy, want no GPU and none", line, before.Busy)
	}
	player.Write(fmt.Sprintf(gpu, fmt.Sprint(pid, ":5e8")))
	after := wait("it runs with a GPU", func(j *api.Job) bool {
		return j.Running && len(j.GPUs) == 1 && j.GPUs[0].Allocated > 2
	})
	if after.ID != before.ID || after.GPUs[0].ID != "GPU-0" || after.Busy == 0 {
		t.Errorf("got %+v, want job %s with busy time on GPU-0", after, before.ID)
	}
	_ = program.Process.Kill()
	wait("it has ended", func(j *api.Job) bool { return !j.Running })
}
