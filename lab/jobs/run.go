//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tools are the paths of what a job needs.
type tools struct {
	stallspan string // the program under test
	library   string // folder of the driver's stand-in
	programs  string // folder of the Python programs
	keep      string // folder for reports, logs and recordings
}

// python is Debian's, for which the packages are.
const python = "/usr/bin/python3"

// longest is the time limit of a job.
const longest = 100 * time.Second

// The folders of a run's logs.
const (
	logFolder    = "log"
	secondFolder = "second" // of the job's neighbour
)

// running is a job's folders during a run.
type running struct {
	tools
	job    job
	disk   *place
	folder string // in memory: log, gpus, memory
	report string
}

// perform runs a job once, and returns the results of its windows. evidence is schedule or sampled.
func (t tools) perform(ctx context.Context, j job, seed uint64, evidence string) (results []*result, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err := t.prepare(ctx, j, seed)
	if r != nil {
		defer func() { err = errors.Join(err, r.remove()) }()
	}
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%d-%s", j.Name, seed, evidence)
	r.report = filepath.Join(t.keep, name+".json")
	stop, err := r.neighbours(ctx)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	if err := r.disk.slow(); err != nil {
		return nil, errors.Join(err, stop())
	}
	command := r.command(ctx, j, filepath.Join(r.folder, logFolder), evidence,
		"--report", filepath.Join(r.folder, "out", "report.json"),
		"--record", filepath.Join(r.folder, "out", "recording.jsonl.gz"))
	out, err := command.CombinedOutput()
	err = errors.Join(err, stop())
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	if err := r.keepRun(name); err != nil {
		return nil, err
	}
	return r.judge(seed, evidence)
}

// prepare opens the storage and writes the data.
func (t tools) prepare(ctx context.Context, j job, seed uint64) (*running, error) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan-jobs-")
	if err != nil {
		return nil, err
	}
	r := &running{tools: t, job: j, folder: folder}
	err = os.Chmod(folder, 0o755)
	for _, f := range []string{logFolder, secondFolder, "gpus", "memory", "out", "loops"} {
		path := filepath.Join(folder, f)
		err = errors.Join(err, os.Mkdir(path, 0o777), os.Chmod(path, 0o777))
	}
	for i := range j.GPUs {
		path := filepath.Join(folder, "gpus", strconv.Itoa(i))
		err = errors.Join(err, os.WriteFile(path, make([]byte, 32), 0o666), os.Chmod(path, 0o666))
	}
	plays := []byte(j.gpuText(filepath.Join(folder, "gpus")))
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "gpus.txt"), plays, 0o644))
	if err != nil {
		return r, err
	}
	if err := t.compile(j.Program, filepath.Join(folder, compiled)); err != nil {
		return r, err
	}
	if r.disk, err = openDisk(ctx, j.Disk, filepath.Join(folder, "loops")); err != nil {
		return r, err
	}
	data := j.Data
	if j.Second != nil {
		data = append(data[:len(data):len(data)], j.Second.Data...)
	}
	for _, d := range data {
		out, err := exec.CommandContext(ctx, python, filepath.Join(t.programs, "data.py"), d.Kind, r.expand(d.Path),
			strconv.Itoa(d.Count), strconv.Itoa(d.Size), strconv.FormatUint(seed, 10)).CombinedOutput()
		if err != nil {
			return r, fmt.Errorf("data.py: %w: %s", err, bytes.TrimSpace(out))
		}
	}
	return r, nil
}

// compiled is the name of a program that was compiled.
const compiled = "program"

// compile compiles a program that is not in Python.
func (t tools) compile(program, into string) (err error) {
	switch from := filepath.Join(t.programs, program); filepath.Ext(program) {
	case ".py":
	case ".c":
		_, err = tool("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", into, from, "-lpthread", "-lm")
	case ".java":
		classes := into + ".classes"
		if _, err = tool("javac", "-Xlint:all", "-Werror", "-d", classes, from); err != nil {
			return fmt.Errorf("javac, of Debian's default-jdk-headless: %w", err)
		}
		class := strings.TrimSuffix(program, ".java")
		err = os.WriteFile(into, []byte("#!/bin/sh\nexec java -cp "+classes+" "+class+" \"$@\"\n"), 0o755)
	default:
		_, err = tool("go", "build", "-C", from, "-o", into)
	}
	return err
}

func (r *running) remove() error {
	var err error
	if r.disk != nil {
		err = r.disk.close()
	}
	return errors.Join(err, os.RemoveAll(r.folder))
}

// expand replaces {disk} and {memory}.
func (r *running) expand(text string) string {
	return strings.NewReplacer("{disk}", r.disk.dir, "{memory}", filepath.Join(r.folder, "memory")).Replace(text)
}

// command returns a job under stallspan run.
func (r *running) command(ctx context.Context, j job, log, evidence string, flags ...string) *exec.Cmd {
	program := []string{python, filepath.Join(r.programs, j.Program)}
	if filepath.Ext(j.Program) != ".py" {
		program = []string{filepath.Join(r.folder, compiled)}
	}
	for _, a := range j.Args {
		program = append(program, r.expand(a))
	}
	switch line := strings.Join(program, " "); {
	case j.Bash != "":
		words := strings.NewReplacer("PYTHON PROGRAM", line, "PYTHON", python, "PROGRAM", strings.Join(program[1:], " "),
			"{programs}", r.programs)
		program = []string{"bash", "-c", words.Replace(j.Bash)}
	case j.Input != "":
		program = []string{"bash", "-c", "(" + r.expand(j.Input) + ") | " + line}
	}
	args := append([]string{"run", "--baseline", "off"}, flags...)
	args = append(append(args, "--"), program...)
	c := exec.CommandContext(ctx, r.stallspan, args...)
	c.Dir = r.folder
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Env = append(os.Environ(),
		"JOBS_LOG="+log, "JOBS_GPUS="+filepath.Join(r.folder, "gpus"), "JOBS_DEVICE="+r.disk.device,
		"FAKENVML_FILE="+filepath.Join(r.folder, "gpus.txt"), "PYTHONDONTWRITEBYTECODE=1",
		"XDG_STATE_HOME="+filepath.Join(r.folder, "out"), "HOME="+filepath.Join(r.folder, "out"))
	if j.GPUs > 0 {
		c.Env = append(c.Env, "LD_LIBRARY_PATH="+r.library)
	}
	if evidence == sampled {
		c.Env = append(c.Env, "STALLSPAN_SCHEDULE=off")
	}
	if j.User != "" {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: credential(j.User)}
	}
	return r.inGroup(c)
}

// inGroup makes a command enter the cgroup that the disk limits, before it becomes the program.
func (r *running) inGroup(c *exec.Cmd) *exec.Cmd {
	if r.disk.group == "" {
		return c
	}
	script := `echo $$ > "$0" && exec "$@"`
	if a := c.SysProcAttr; a != nil && a.Credential != nil {
		script = fmt.Sprintf(`echo $$ > "$0" && exec setpriv --reuid %d --regid %d --clear-groups "$@"`,
			a.Credential.Uid, a.Credential.Gid)
		c.SysProcAttr = nil
	}
	c.Args = append([]string{"sh", "-c", script, filepath.Join(r.disk.group, "cgroup.procs")}, c.Args...)
	c.Path = "/bin/sh"
	return c
}

// credential returns a user's ids, or the ids that no user has.
func credential(name string) *syscall.Credential {
	const unused = 65534
	c := &syscall.Credential{Uid: unused, Gid: unused}
	u, err := user.Lookup(name)
	if err != nil {
		return c
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 == nil && err2 == nil {
		c.Uid, c.Gid = uint32(uid), uint32(gid)
	}
	return c
}

// neighbours starts what runs next to the job. stop ends it and waits for it; it is never nil.
func (r *running) neighbours(ctx context.Context) (stop func() error, err error) {
	var ends []func() error
	stop = func() error {
		var problems []error
		for _, end := range ends {
			problems = append(problems, end())
		}
		return errors.Join(problems...)
	}
	if r.job.Server != nil {
		server := filepath.Join(r.folder, "server")
		if err := r.compile(cmp.Or(r.job.Serves, "objects"), server); err != nil {
			return stop, err
		}
		args := make([]string, len(r.job.Server))
		for i, a := range r.job.Server {
			args[i] = r.expand(a)
		}
		end, err := start(exec.CommandContext(ctx, server, args...))
		if err != nil {
			return stop, err
		}
		ends = append(ends, end)
	}
	if r.job.Peer != nil {
		args := []string{filepath.Join(r.programs, r.job.Program)}
		for _, a := range r.job.Peer {
			args = append(args, r.expand(a))
		}
		c := exec.CommandContext(ctx, python, args...)
		c.Env = append(os.Environ(), "JOBS_LOG="+filepath.Join(r.folder, secondFolder))
		end, err := start(c)
		if err != nil {
			return stop, err
		}
		ends = append(ends, end)
	}
	if r.job.Second != nil {
		c := r.command(ctx, *r.job.Second, filepath.Join(r.folder, secondFolder), schedule)
		end, err := start(c)
		if err != nil {
			return stop, err
		}
		ends = append(ends, end)
		time.Sleep(3 * time.Second) // it imports its libraries
	}
	if r.job.Fio == "" {
		return stop, nil
	}
	dir := r.disk.dir
	if r.job.Fio == "another" {
		folder := filepath.Join(r.folder, "another")
		if err := os.Mkdir(folder, 0o755); err != nil {
			return stop, err
		}
		other, err := openDisk(ctx, diskSpec{Kind: stacked, IOPS: 150}, folder)
		if err != nil {
			return stop, err
		}
		ends = append(ends, other.close)
		if err := other.slow(); err != nil {
			return stop, err
		}
		dir = other.dir
	}
	fio := exec.CommandContext(ctx, "fio", "--name=fio", "--directory="+dir, "--size=64m", "--rw=randread", "--bs=16k",
		"--direct=1", "--ioengine=libaio", "--iodepth=4", "--time_based", "--runtime=90", "--rate_iops=60")
	end, err := start(fio)
	if err != nil {
		return stop, err
	}
	ends = append([]func() error{end}, ends...)
	time.Sleep(2 * time.Second) // it writes its file
	return stop, nil
}

// start starts a command; end sends it SIGTERM and waits.
func start(c *exec.Cmd) (end func() error, err error) {
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = c.Process.Signal(syscall.SIGTERM)
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) {
			return err
		}
		return nil // a signal or an exit code: it was stopped
	}, nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
