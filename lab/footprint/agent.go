package main

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
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// agent is a running agent that follows a job of its own.
type agent struct {
	process
	program *exec.Cmd
	job     *exec.Cmd
	client  *api.Client
	backend *backend
	dir     string
}

const watchedProcesses = 10 // of the job that an agent watches

// watching measures agents of one or two builds that watch a job each, at the same time.
func watching(rounds int, length time.Duration, binaries ...string) (costs []cost, err error) {
	var all []*agent
	defer func() {
		for _, a := range all {
			err = errors.Join(err, a.stop())
		}
	}()
	copies, err := copied(binaries)
	defer func() { _ = os.RemoveAll(copies.dir) }()
	if err != nil {
		return nil, err
	}
	for _, binary := range copies.paths {
		a, err := startAgent(binary, watchedProcesses)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	time.Sleep(startTime)
	shares, err := sharesOf(all, rounds, length)
	for i, a := range all {
		resident, failed := a.resident()
		err = errors.Join(err, failed)
		what := copies.name(i) + fmt.Sprintf("watching a job of %d processes", watchedProcesses)
		costs = append(costs, cost{what + ", of one core", shares[i], 0.6, "%"},
			cost{what + ", resident", float64(resident) / 1e6, 60, "MB"})
	}
	return costs, err
}

// sharesOf returns what each agent took of one core, in percent: the median of some rounds.
func sharesOf(all []*agent, rounds int, length time.Duration) ([]float64, error) {
	rows := make([][]float64, len(all))
	for range rounds {
		before, err := onCPU(all)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		time.Sleep(length)
		after, err := onCPU(all)
		if err != nil {
			return nil, err
		}
		took := time.Since(began).Seconds()
		for i := range all {
			rows[i] = append(rows[i], 100*(after[i]-before[i]).Seconds()/took)
		}
	}
	shares := make([]float64, len(all))
	for i := range all {
		shares[i] = median(rows[i])
	}
	return shares, nil
}

func onCPU(all []*agent) (times []time.Duration, err error) {
	for _, a := range all {
		spent, failed := a.onCPU()
		times, err = append(times, spent), errors.Join(err, failed)
	}
	return times, err
}

// copies are programs in a folder of their own.
type copies struct {
	dir   string
	paths []string
}

// copied copies builds before they are measured, in the pieces that cp and installers write. The pages of a file that
// was just linked are in larger pieces in memory, and an agent of such a file took up to twice as long.
func copied(binaries []string) (all copies, err error) {
	if all.dir, err = os.MkdirTemp("", "footprint"); err != nil {
		return all, err
	}
	for i, binary := range binaries {
		if binary == "" {
			continue
		}
		to := filepath.Join(all.dir, strconv.Itoa(i+1))
		if err := copyProgram(binary, to); err != nil {
			return all, fmt.Errorf("%s cannot be measured, build it as this program's comment says: %w", binary, err)
		}
		all.paths = append(all.paths, to)
	}
	return all, nil
}

const copyPiece = 128 << 10

const startTime = 15 * time.Second // until an agent with a job is settled

func copyProgram(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(program, copyPiece) {
		_, failed := file.Write(piece)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, file.Close())
}

// name is what precedes the costs of a build, if there are two.
func (c copies) name(i int) string {
	if len(c.paths) < 2 {
		return ""
	}
	return fmt.Sprintf("build %d, ", i+1)
}

func startAgent(binary string, processes int) (a *agent, err error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return nil, err
	}
	if a, err = launch(binary, dir, nil); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.stop())
		}
	}()
	a.job = exec.Command("sh", "-c", "i=1; while [ $i -lt "+strconv.Itoa(processes)+
		" ]; do sleep 100000 & i=$((i+1)); done; wait")
	a.job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.job.Start(); err != nil {
		return a, err
	}
	_, err = a.client.Begin(context.Background(),
		api.Announcement{Kind: window.Custom, Name: "job", PID: a.job.Process.Pid})
	return a, err
}

// launch starts an agent with a backend of its own, and returns when it answers. Its files are in dir, which stop
// removes, also after an error.
func launch(binary, dir string, arguments []string, environment ...string) (a *agent, err error) {
	a = &agent{dir: dir}
	if a.backend, err = serveBackend(); err != nil {
		return a, err
	}
	socket := filepath.Join(dir, "s.sock")
	a.program = exec.Command(binary, append([]string{"agent"}, arguments...)...)
	a.program.Env = append(append(os.Environ(), api.SocketVariable+"="+socket, "XDG_STATE_HOME="+dir,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+a.backend.address), environment...)
	a.program.Stderr = os.Stderr
	if err := a.program.Start(); err != nil {
		return a, fmt.Errorf("%s cannot be started, build it as this program's comment says: %w", binary, err)
	}
	a.process = process(a.program.Process.Pid)
	a.client, err = reach(socket)
	return a, err
}

func (a *agent) stop() (err error) {
	if a.program != nil && a.program.Process != nil {
		_ = a.program.Process.Signal(syscall.SIGTERM)
		err = a.program.Wait()
	}
	if a.job != nil && a.job.Process != nil {
		_ = syscall.Kill(-a.job.Process.Pid, syscall.SIGKILL)
		_ = a.job.Wait()
	}
	if a.backend != nil {
		a.backend.stop()
	}
	_ = os.RemoveAll(a.dir)
	return err
}

func reach(socket string) (*api.Client, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			client := api.NewClient(socket)
			if begun, err := client.Begin(context.Background(),
				api.Announcement{Kind: window.Custom, Name: "first"}); err == nil {
				_, err = client.End(context.Background(), begun.ID)
				return client, err
			}
		}
	}
	return nil, errors.New("the agent does not answer")
}

func begin(ctx context.Context, client *api.Client, pid, n int) (ids []string, err error) {
	for i := range n {
		begun, err := client.Begin(ctx, api.Announcement{Kind: window.ModelLoad, PID: pid,
			Model: fmt.Sprintf("model-%d", i%7), Path: "/models/" + strings.Repeat("x", i%50)})
		if err != nil {
			return nil, err
		}
		ids = append(ids, begun.ID)
	}
	return ids, nil
}

func end(ctx context.Context, client *api.Client, ids []string) error {
	for _, id := range ids {
		if _, err := client.End(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// churn begins and ends windows at an even rate, with the given number open at any moment, for a length or until ctx
// ends.
func churn(ctx context.Context, client *api.Client, pid, aMinute, atOnce int, length time.Duration) error {
	ticker := time.NewTicker(time.Minute / time.Duration(aMinute))
	defer ticker.Stop()
	var open []string
	stop := ctx.Done()
	ctx = context.WithoutCancel(ctx) // calls under way succeed
	for over := time.Now().Add(length); time.Now().Before(over); {
		select {
		case <-stop:
			return end(ctx, client, open)
		case <-ticker.C:
		}
		ids, err := begin(ctx, client, pid, 1)
		if err != nil {
			return err
		}
		if open = append(open, ids...); len(open) > atOnce {
			if err := end(ctx, client, open[:1]); err != nil {
				return err
			}
			open = open[1:]
		}
	}
	return end(ctx, client, open)
}
