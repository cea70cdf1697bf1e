//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/lab/joblog"
	"github.com/stallspan/stallspan/test/slowdisk"
)

const (
	gpuFolder = "gpus"            // of the programs' accelerators, in the run's folder
	longest   = 240 * time.Second // a program
	diskSize  = 2 << 30
)

// bench is what all cases of a run share.
type bench struct {
	*options
	folder string // in memory
	places string // of the disks; not in memory, because no program's files would be there
	disks  map[slowdisk.Kind]*slowdisk.Disk
	mount  *mounted // of -nfs
	agent  *agent
	device bool // it was made here
}

// run runs the cases next to one agent.
func (o *options) run(ctx context.Context, chosen []entry) (results []*result, err error) {
	b, err := o.newBench(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	failed := map[string]string{}
	var ran []entry
	for _, e := range chosen {
		fmt.Print(e.name, " ")
		err := b.perform(ctx, e.plan(o.seed))
		if ctx.Err() != nil { // the cases before count
			break
		}
		if err != nil {
			failed[e.name] = err.Error()
		}
		ran = append(ran, e)
	}
	fmt.Println()
	if o.alone {
		return nil, o.show(ran, failed)
	}
	time.Sleep(agentLag)
	if err := b.agent.keep(context.WithoutCancel(ctx), o.windowsFile()); err != nil {
		return nil, err
	}
	return o.judge(ran, failed)
}

// show prints the labels of cases.
func (o *options) show(ran []entry, failed map[string]string) error {
	for _, e := range ran {
		p := e.plan(o.seed)
		fmt.Printf("%s, %s:\n", p.Name, p.Disk)
		if why := failed[e.name]; why != "" {
			fmt.Println("  FAILED:", why)
			continue
		}
		l, err := joblog.ReadFile(o.logFile(p))
		if err != nil {
			return err
		}
		if len(l.Labels) == 0 {
			fmt.Println("  no label")
			continue
		}
		from := l.Labels[0].Start
		for _, one := range l.Labels {
			fmt.Printf("  %-10s %6.2f to %6.2f s  %s\n", one.Kind, seconds(one.Start-from), seconds(one.End-from),
				filepath.Base(one.Name))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d cases failed", len(failed))
	}
	return nil
}

// windowsFile is where the detected windows of all cases are kept.
func (o *options) windowsFile() string { return filepath.Join(o.keep, "windows.json") }

// logFile is where the log of a case is kept.
func (o *options) logFile(p *plan) string {
	return filepath.Join(o.keep, fmt.Sprintf("%s-%d.log", p.Name, p.Seed))
}

// judge compares the kept windows with the kept logs of cases.
func (o *options) judge(cases []entry, failed map[string]string) (results []*result, err error) {
	kept, err := readKept(o.windowsFile())
	if err != nil {
		return nil, err
	}
	logs := make([]*joblog.Log, len(cases))
	for i, e := range cases {
		p := e.plan(o.seed)
		r := &result{Case: p.Name, Seed: p.Seed, Disk: string(p.Disk), Failed: failed[e.name]}
		if o.nfs != "" {
			r.Disk = "NFS " + o.nfs
		}
		results = append(results, r)
		if r.Failed != "" {
			continue
		}
		if logs[i], err = joblog.ReadFile(o.logFile(p)); err != nil {
			r.Failed = err.Error()
		}
	}
	for i, r := range results {
		if logs[i] != nil && r.Failed == "" {
			r.compare(logs[i], kept.of(logs[i], logs), kept.at(kept.Now), kept.at)
			fmt.Println(r.line())
		}
	}
	return results, nil
}

// newBench starts the agent.
func (o *options) newBench(ctx context.Context) (*bench, error) {
	folder, err := os.MkdirTemp("/dev/shm", "stallspan-detect-")
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, folder: folder, disks: map[slowdisk.Kind]*slowdisk.Disk{}}
	if b.places, err = os.MkdirTemp("/var/tmp", "stallspan-detect-"); err == nil {
		err = b.gpus()
	}
	if err == nil {
		err = b.makeDevice()
	}
	if err == nil && !o.alone {
		b.agent, err = o.startAgent(ctx, folder)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error {
	var problems []error
	if b.agent != nil {
		problems = append(problems, b.agent.stop())
	}
	if b.device {
		problems = append(problems, os.Remove(cudaDevice))
	}
	if b.mount != nil {
		problems = append(problems, b.mount.Close(), os.Remove(b.place(slowdisk.Network)))
	}
	for kind, d := range b.disks {
		problems = append(problems, unix.Unmount(b.place(kind), unix.MNT_DETACH), os.Remove(b.place(kind)), d.Close())
	}
	return errors.Join(append(problems, os.Remove(b.places), os.RemoveAll(b.folder))...)
}

// cudaDevice is the device that CUDA opens. Programs open it as CUDA does (label.py).
const cudaDevice = "/dev/nvidia-uvm"

// makeDevice makes the device where no driver has: with the number of /dev/full, which few other programs open.
func (b *bench) makeDevice() error {
	err := unix.Mknod(cudaDevice, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 7)))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if b.device = err == nil; err != nil {
		return fmt.Errorf("mknod %s: %w", cudaDevice, err)
	}
	return nil
}

// place is where programs find a disk.
func (b *bench) place(kind slowdisk.Kind) string { return filepath.Join(b.places, string(kind)) }

// gpus shows two GPUs without processes.
func (b *bench) gpus() error {
	folder := filepath.Join(b.folder, gpuFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text := "period_us 20000\n"
	for n := range 2 {
		path := filepath.Join(folder, strconv.Itoa(n))
		if err := os.WriteFile(path, make([]byte, 32), 0o644); err != nil {
			return err
		}
		text += fmt.Sprintf("gpu %d busy_file=%s memory_used=0\n", n, path)
	}
	path := filepath.Join(folder, "gpus.txt")
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path))
}

// disk returns the disk of a kind, which is opened when it is first needed.
func (b *bench) disk(ctx context.Context, p *plan) (*slowdisk.Disk, error) {
	d := b.disks[p.Disk]
	if d == nil {
		var err error
		options := slowdisk.Options{Size: diskSize}
		if p.Disk == slowdisk.Throttled {
			options.IOPS = unlimited
		}
		if d, err = slowdisk.Open(ctx, p.Disk, options); err != nil {
			return nil, err
		}
		b.disks[p.Disk] = d
		if err := os.Mkdir(b.place(p.Disk), 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mount(d.Dir, b.place(p.Disk), "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("mount: %w", err)
		}
	}
	if p.Disk == slowdisk.Local {
		return d, nil
	}
	d.Options.BytesPerSecond, d.Options.Delay = p.Rate, p.Delay
	if p.Disk == slowdisk.Network {
		if err := readAhead(d.Dir, cmp.Or(p.Ahead, d.Options.ReadAhead)); err != nil {
			return nil, err
		}
	}
	return d, d.Fast()
}

// readAhead sets the kernel's read-ahead of a mount, in bytes.
func readAhead(folder string, size int64) error {
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return &os.PathError{Op: "stat", Path: folder, Err: err}
	}
	path := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(st.Dev), unix.Minor(st.Dev))
	return os.WriteFile(path, strconv.AppendInt(nil, size>>10, 10), 0o644)
}

// unlimited is more operations a second than any rate of bytes allows.
const unlimited = 1e6

// perform runs a case, and keeps its log.
func (b *bench) perform(ctx context.Context, p *plan) (err error) {
	d, err := b.storage(ctx, p)
	if err != nil {
		return err
	}
	folder := filepath.Join(b.place(p.Disk), p.Name)
	memory := filepath.Join(b.folder, p.Name)
	defer func() { err = errors.Join(err, os.RemoveAll(folder), os.RemoveAll(memory)) }()
	for _, f := range []string{folder, memory} {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return err
		}
	}
	expand := strings.NewReplacer("{disk}", folder, "{memory}", memory).Replace
	write := expand
	if b.mount != nil { // the server's folder is faster
		write = strings.NewReplacer("{disk}", filepath.Join(b.mount.Folder, p.Name), "{memory}", memory).Replace
	}
	if err := b.models(ctx, p, write); err != nil {
		return err
	}
	if err := d.Slow(); err != nil {
		return err
	}
	logs, err := b.programsOf(ctx, p, expand)
	if err := errors.Join(err, d.Fast()); err != nil {
		return err
	}
	return errors.Join(b.keepLog(p, logs), b.gpus())
}

// keepLog keeps the logs of a case's programs in one file. The threads of the first program are those that count, and
// the others keep their labels only.
func (b *bench) keepLog(p *plan, logs []string) error {
	var text bytes.Buffer
	for i, folder := range logs {
		files, err := filepath.Glob(filepath.Join(folder, "*.log"))
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for line := range bytes.Lines(data) {
				if i == 0 || bytes.Contains(line, []byte(" label ")) {
					text.Write(line)
				}
			}
		}
	}
	return os.WriteFile(b.logFile(p), text.Bytes(), 0o644)
}

// models writes the models and data sets of a case.
func (b *bench) models(ctx context.Context, p *plan, expand func(string) string) error {
	var text bytes.Buffer
	for _, m := range p.Models {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		text.WriteString(expand(string(line)) + "\n")
	}
	c := exec.CommandContext(ctx, python, filepath.Join(b.programs, "models.py"))
	c.Stdin = &text
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("models.py: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// programsOf runs the programs of a case in parallel, and returns the folders of their logs.
func (b *bench) programsOf(ctx context.Context, p *plan, expand func(string) string) (logs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	failed := make([]error, len(p.Programs))
	var group sync.WaitGroup
	for n, one := range p.Programs {
		log := filepath.Join(b.folder, p.Name, "log"+strconv.Itoa(n))
		if err := os.MkdirAll(log, 0o755); err != nil {
			return nil, err
		}
		logs = append(logs, log)
		args := []string{filepath.Join(b.programs, one[0])}
		for _, a := range one[1:] {
			args = append(args, glob(expand(a))...)
		}
		c := exec.CommandContext(ctx, python, args...)
		c.Env = append(os.Environ(), "JOBS_LOG="+log, "JOBS_GPUS="+filepath.Join(b.folder, gpuFolder),
			"DETECT_RATE="+strconv.FormatInt(p.Bus, 10), "PYTHONDONTWRITEBYTECODE=1",
			"PYTHONPATH="+filepath.Join(b.programs, "../../jobs/programs"))
		group.Go(func() { failed[n] = serve(c) })
	}
	group.Wait()
	return logs, errors.Join(failed...)
}

// glob returns the files that a pattern names, or the argument itself.
func glob(argument string) []string {
	if files, err := filepath.Glob(argument); err == nil && len(files) > 0 {
		return files
	}
	return []string{argument}
}

// serve runs a program, and drops the files from the page cache that it names.
func serve(c *exec.Cmd) error {
	var problems bytes.Buffer
	c.Stderr = &problems
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != "cold" {
			continue
		}
		for _, path := range words[1:] {
			err = errors.Join(err, forget(path))
		}
		_, _ = io.WriteString(in, "\n")
	}
	if failed := c.Wait(); failed != nil && !terminated(c) {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", filepath.Base(c.Args[1]), failed, bytes.TrimSpace(problems.Bytes())))
	}
	return err
}

// terminated reports whether a program ended itself with SIGTERM, as one that is stopped while it loads.
func terminated(c *exec.Cmd) bool {
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// forget writes a file back and drops it from the page cache.
func forget(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Sync(); err != nil {
		return err
	}
	for try := range 20 {
		time.Sleep(time.Duration(try) * time.Millisecond)
		if err := pagecache.Forget(file); err != nil {
			return err
		}
		if left, _, err := pagecache.Resident(file); err != nil || left == 0 {
			return err
		}
	}
	return fmt.Errorf("%s stays in the page cache", path)
}
