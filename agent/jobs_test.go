package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/test/fixture"
)

// jobsAgent starts an agent with a config on GPUs that a player shows, until the test ends. It returns what the agent
// says, and a function that runs stallspan jobs there.
func jobsAgent(t *testing.T, config string, player *fixture.Player) (said *liveOutput, jobs func(...string) string) {
	t.Helper()
	socket := socketIn(t)
	v := stallspan(t, "agent", "--config", config)
	said = new(liveOutput)
	v.Stderr = said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "FAKENVML_FILE="+player.Path)
	v.start()
	said.until(t, 1, "windows are announced at "+socket)
	t.Cleanup(func() { stop(t, v) })
	return said, func(args ...string) string {
		ls := stallspan(t, append([]string{"jobs"}, args...)...)
		ls.Env = append(ls.Env, "STALLSPAN_SOCKET="+socket)
		if code := ls.run(); code != 0 {
			t.Fatalf("jobs %v: got exit code %d: %s", args, code, &ls.err)
		}
		return ls.out.String()
	}
}

// A program that holds memory of a GPU is a job, without any announcement, and stays listed after its end.
func TestJobsCommand(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("held-%d.sh", os.Getpid()) // other programs of this machine may be jobs too
	script := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(script, []byte("read line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sh", script)
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = in.Close()
		_ = program.Wait() // read found no line
	})
	defer end()
	const gpu = "gpu 0 uuid=GPU-0 utilization=40 processes=%s\ngpu 1 uuid=GPU-1 utilization=0\n"
	player := fixture.PlayGPU(t, fmt.Sprintf(gpu, fmt.Sprint(program.Process.Pid, ":5e8")))
	_, jobs := jobsAgent(t, nvmlConfig(t, fixture.NVML(t)), player)
	wait := func(what string, ok func(j api.Job, gpus int) bool) api.Job {
		t.Helper()
		var all api.Jobs
		for until := time.Now().Add(slowest / 2); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			all = api.Jobs{}
			if err := json.Unmarshal([]byte(jobs("--json")), &all); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(all.Jobs, func(j api.Job) bool { return j.PID == program.Process.Pid })
			if at >= 0 && ok(all.Jobs[at], len(all.GPUs)) {
				return all.Jobs[at]
			}
		}
		t.Fatalf("got %+v, want %s with number %d", all, what, program.Process.Pid)
		return api.Job{}
	}
	j := wait("a running job with two seconds", func(j api.Job, _ int) bool { return j.Running && j.Allocated > 2 })
	if j.Name != name || len(j.GPUs) != 1 || j.GPUs[0].ID != "GPU-0" {
		t.Errorf("got the job %+v, want %s on GPU-0", j, name)
	}
	if sum := j.Busy + j.Storage + j.CPU + j.Other; sum < j.Allocated-1e-6 || sum > j.Allocated+1e-6 {
		t.Errorf("got a sum of %v s, want the allocated %v s", sum, j.Allocated)
	}
	if share := j.Busy / j.Allocated; share < 0.3 || share > 0.5 {
		t.Errorf("got the busy share %.2f, want about 0.4", share)
	}
	if got := jobs(); !strings.Contains(got, name+" ") || !strings.Contains(got, " %") {
		t.Errorf("got %s, want a line of %s", got, name)
	}
	end()
	player.Write(fmt.Sprintf(gpu, ""))
	wait("both GPUs and an ended job", func(j api.Job, gpus int) bool { return !j.Running && gpus == 2 })
	if got := jobs(); !strings.Contains(got, name+", ended") {
		t.Errorf("got %s, want the job as ended", got)
	}
	if got := jobs("--running"); strings.Contains(got, name) {
		t.Errorf("--running: got %s, want no %s", got, name)
	}
}

// A job that outlives agents stays one job with the sum of what they saw, also after a kill, and one that ended before
// stays listed. The time between agents counts for no job.
func TestJobsOutliveTheAgent(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var pids [2]int
	for i := range pids {
		program := exec.Command("sleep", "600")
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = program.Process.Kill()
			_ = program.Wait()
		}()
		pids[i] = program.Process.Pid
	}
	const gpu = "gpu 0 uuid=GPU-0 utilization=40 processes=%d:5e8\ngpu 1 uuid=GPU-1 utilization=10 processes=%s\n"
	player := fixture.PlayGPU(t, fmt.Sprintf(gpu, pids[0], fmt.Sprintf("%d:5e8", pids[1])))
	socket, state, config := socketIn(t), t.TempDir(), nvmlConfig(t, fixture.NVML(t))
	start := func() *invocation {
		v := stallspan(t, "agent", "--config", config)
		said := new(liveOutput)
		v.Stderr = said
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "FAKENVML_FILE="+player.Path, "XDG_STATE_HOME="+state)
		v.start()
		said.until(t, 1, "windows are announced at "+socket)
		return v
	}
	client := api.NewClient(socket)
	listed := func(what string, ok func(map[int]api.Job) bool) map[int]api.Job {
		t.Helper()
		jobs := map[int]api.Job{}
		for until := time.Now().Add(slowest / 2); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			all, err := client.Jobs(t.Context(), time.Time{}, time.Time{})
			if err != nil || all.Problem != "" {
				t.Fatalf("got %+v, %v, want the jobs", all, err)
			}
			clear(jobs)
			for _, j := range all.Jobs {
				if _, twice := jobs[j.PID]; twice && slices.Contains(pids[:], j.PID) {
					t.Fatalf("got %+v, want one job for each process", all.Jobs)
				}
				if slices.Contains(pids[:], j.PID) { // other programs of this machine may be jobs too
					jobs[j.PID] = j
				}
			}
			if ok(jobs) {
				return jobs
			}
		}
		t.Fatalf("got %+v, want %s", jobs, what)
		return nil
	}
	first := start()
	listed("two jobs", func(jobs map[int]api.Job) bool {
		return jobs[pids[0]].Allocated > 2 && jobs[pids[1]].Allocated > 2
	})
	player.Write(fmt.Sprintf(gpu, pids[0], ""))
	listed("one that has ended", func(jobs map[int]api.Job) bool {
		return jobs[pids[0]].Running && len(jobs) == 2 && !jobs[pids[1]].Running
	})
	stop(t, first)
	time.Sleep(2 * time.Second) // of no job
	second := start()
	before := listed("both jobs of the first agent", func(jobs map[int]api.Job) bool {
		return jobs[pids[0]].Running && jobs[pids[0]].Allocated > 2 && jobs[pids[1]].Allocated > 2
	})
	if before[pids[1]].Running {
		t.Errorf("got the job %+v, want it as ended", before[pids[1]])
	}
	after := listed("the first job to go on", func(jobs map[int]api.Job) bool {
		return jobs[pids[0]].Allocated > before[pids[0]].Allocated+2
	})
	j := after[pids[0]]
	if wall := time.Since(begin).Seconds() - 2; j.ID != before[pids[0]].ID || len(j.GPUs) != 1 || j.Allocated > wall ||
		j.Sum() < j.Allocated-1e-6 || j.Sum() > j.Allocated+1e-6 || j.Name != "sleep" {
		t.Errorf("got %+v, want one job on a GPU with less than %v s, all of it divided", j, wall)
	}
	if after[pids[1]].Allocated != before[pids[1]].Allocated {
		t.Errorf("got %+v, want no more time than %+v", after[pids[1]], before[pids[1]])
	}
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait() // it was killed
	third := start()
	last := listed("both jobs after a kill", func(jobs map[int]api.Job) bool {
		return len(jobs) == 2 && jobs[pids[0]].Running
	})
	if got := last[pids[0]].Allocated; got < 2 || got > time.Since(begin).Seconds() {
		t.Errorf("got %v s, want what the first agent has written, and what the third one saw", got)
	}
	stop(t, third)
}

// nvmlConfig writes a config with a driver's library.
func nvmlConfig(t *testing.T, library string) string {
	t.Helper()
	path := t.TempDir() + "/agent.yaml"
	if err := os.WriteFile(path, []byte("sampling: {nvml: "+library+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
