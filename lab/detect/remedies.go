//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/lab/scenario"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// The remedies of loads are followed here, and what that gains is compared with what the report of the cold load
// predicts. The loads are announced, so that nothing depends on what is detected.

const (
	remedyRate = 40 << 20 // bytes per second of the disk
	remedySize = 3 * remedyRate
	remedyIdle = 4 * time.Second // in which the disk has nothing to do
)

// remedyCase is a remedy that is followed. run returns the reports of the load before and after that.
type remedyCase struct {
	name   string
	wanted string // the begin of the remedy
	run    func(*remedyBench, context.Context) (cold, followed *loaded, err error)
}

// followedRemedy is what following a remedy gained.
type followedRemedy struct {
	Case      string  `json:"case"`
	Remedy    string  `json:"remedy"`
	Expected  bool    `json:"expected"` // the remedy is the one that is followed
	Cold      float64 `json:"cold_s"`
	After     float64 `json:"after_s"`
	Predicted float64 `json:"predicted"`
	Low       float64 `json:"low,omitempty"`
	High      float64 `json:"high,omitempty"`
	Measured  float64 `json:"measured"`
	Failed    string  `json:"failed,omitempty"`
}

// loaded is what is read of the report of a load.
type loaded struct {
	Duration float64 `json:"duration_s"`
	Verdict  string  `json:"verdict"`
	Remedy   string  `json:"remedy"`
	Speedup  float64 `json:"speedup_bound"`
	Low      float64 `json:"speedup_low"`
	High     float64 `json:"speedup_high"`
	Load     struct {
		Hit float64 `json:"page_cache_hit_ratio"`
	} `json:"load"`
}

// remedyBench is what the cases share.
type remedyBench struct {
	*bench
	slow *slowdisk.Disk
}

func remedyCases() []remedyCase {
	return []remedyCase{
		{"evicted", "Keep the model in memory", (*remedyBench).evictedCase},
		{"layer", "The model is in a layer", (*remedyBench).layerCase},
		{"preload", "Read the model ahead", (*remedyBench).preloadCase},
	}
}

func (c *remedyCase) runOn(ctx context.Context, b *remedyBench) *followedRemedy {
	f := &followedRemedy{Case: c.name}
	cold, after, err := c.run(b, ctx)
	if err != nil {
		f.Failed = err.Error()
		return f
	}
	f.Remedy, f.Expected = cold.Remedy, strings.HasPrefix(cold.Remedy, c.wanted)
	f.Cold, f.After, f.Measured = cold.Duration, after.Duration, cold.Duration/after.Duration
	f.Predicted, f.Low, f.High = max(cold.Speedup, 1), cold.Low, cold.High
	return f
}

// followRemedies runs the cases and prints them.
func (o *options) followRemedies(ctx context.Context) (code int, err error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return 2, err
	}
	shared, err := o.newBench(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.close()) }()
	b := &remedyBench{bench: shared}
	if b.slow, err = b.disk(ctx, &plan{Disk: slowdisk.SATA, Rate: remedyRate}); err != nil {
		return 1, err
	}
	var all []*followedRemedy
	for _, c := range remedyCases() {
		if !wanted.MatchString(c.name) {
			continue
		}
		f := c.runOn(ctx, b)
		fmt.Printf("%+v\n", *f)
		all = append(all, f)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return 1, err
	}
	if err := os.WriteFile(strings.TrimSuffix(o.out, ".json")+"-remedies.json", append(text, '\n'), 0o644); err != nil {
		return 1, err
	}
	table := remediesTable(all)
	fmt.Print("\n", table)
	if o.markdown != "" {
		return 0, scenario.Rewrite(o.markdown, "detect remedies", table)
	}
	return 0, nil
}

func remediesTable(all []*followedRemedy) string {
	text := "| case | remedy | cold | after the remedy | gain: predicted (range) | measured |\n|---|---|---|---|---|---|\n"
	for _, f := range all {
		if f.Failed != "" {
			text += fmt.Sprintf("| %s | could not run | | | | |\n", f.Case)
			continue
		}
		remedy := "another: " + f.Remedy
		if f.Expected {
			remedy, _, _ = strings.Cut(f.Remedy, ",") // the rest names processes and times of this run
			remedy, _, _ = strings.Cut(remedy, " which ")
		}
		reach := fmt.Sprintf("%.1f or more", f.Low)
		if f.High > 0 { // a gain may have no upper bound, where nearly all of the time was waiting
			reach = fmt.Sprintf("%.1f to %.1f", f.Low, f.High)
		}
		text += fmt.Sprintf("| %s | %s | %.2f s | %.2f s | %.1f (%s) | %.1f |\n", f.Case, remedy, f.Cold, f.After,
			f.Predicted, reach, f.Measured)
	}
	return text
}

// helper is a running programs/remedy.py.
type helper struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// helper starts programs/remedy.py; in a cgroup, if group is not "".
func (b *remedyBench) helper(ctx context.Context, group string) (*helper, error) {
	args := []string{python, filepath.Join(b.programs, "remedy.py")}
	if group != "" {
		args = append([]string{"/bin/sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "JOBS_LOG="+b.folder, "STALLSPAN_SOCKET="+filepath.Join(b.folder, "agent.sock"),
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join(b.programs, "../../jobs/programs"))
	h := &helper{command: c}
	var err error
	if h.in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewScanner(out)
	h.out.Buffer(nil, 1<<20)
	return h, c.Start()
}

// do sends one line and returns the answer.
func (h *helper) do(what, path string) (*loaded, error) {
	if _, err := fmt.Fprintln(h.in, what, path); err != nil {
		return nil, err
	}
	if !h.out.Scan() {
		return nil, fmt.Errorf("%s %s: remedy.py gives no answer: %w", what, path, h.out.Err())
	}
	answer := &loaded{}
	return answer, json.Unmarshal(h.out.Bytes(), answer)
}

func (h *helper) end() error {
	return errors.Join(h.in.Close(), h.command.Wait())
}

// model writes a model on a disk, and makes it cold if that is the slow one.
func (b *remedyBench) model(ctx context.Context, d *slowdisk.Disk, name string, size int) (string, error) {
	if err := d.Fast(); err != nil {
		return "", err
	}
	path := filepath.Join(b.place(d.Kind), name)
	p := &plan{Models: []model{{Kind: "file", Path: path, Size: size, Form: "safetensors"}}}
	if err := b.models(ctx, p, func(text string) string { return text }); err != nil {
		return "", err
	}
	return path, d.Slow()
}

// memoryGroup makes a cgroup of the kernel's memory controller with a limit. end removes it when it is empty.
func memoryGroup(limit int) (group string, end func() error, err error) {
	group = filepath.Join("/sys/fs/cgroup/memory", "stallspan-detect-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", nil, fmt.Errorf("a limit of memory needs the memory controller of cgroup v1: %w", err)
	}
	end = func() error { return os.Remove(group) }
	file := filepath.Join(group, "memory.limit_in_bytes")
	if err := os.WriteFile(file, []byte(strconv.Itoa(limit)), 0); err != nil {
		return "", nil, errors.Join(err, end())
	}
	return group, end, nil
}

// evictedCase loads a model into memory. Another program of the same cgroup then reads so much that the kernel drops
// the model. The remedy keeps it locked.
func (b *remedyBench) evictedCase(ctx context.Context) (cold, after *loaded, err error) {
	const limit = remedySize + 160<<20 // the model, Python and numpy
	path, err := b.model(ctx, b.slow, "evicted.safetensors", remedySize)
	if err != nil {
		return nil, nil, err
	}
	local, err := b.disk(ctx, &plan{Disk: slowdisk.Local})
	if err != nil {
		return nil, nil, err
	}
	other, err := b.model(ctx, local, "other", 3*remedySize)
	if err != nil {
		return nil, nil, err
	}
	group, end, err := memoryGroup(limit)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	loader, err := b.helper(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, loader.end()) }()
	evictor, err := b.helper(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, evictor.end()) }()
	if _, err := loader.do("load", path); err != nil { // now it is in memory
		return nil, nil, err
	}
	time.Sleep(2 * time.Second)
	if _, err := evictor.do("read", other); err != nil {
		return nil, nil, err
	}
	if cold, err = loader.do("load", path); err != nil {
		return nil, nil, err
	}
	if _, err := loader.do("lock", path); err != nil {
		return nil, nil, err
	}
	if err := forget(other); err != nil {
		return nil, nil, err
	}
	if _, err := evictor.do("read", other); err != nil {
		return nil, nil, err
	}
	after, err = loader.do("load", path)
	return cold, after, err
}

// layerCase loads a model from a read-only layer, as of a container's image. The remedy reads it once before.
func (b *remedyBench) layerCase(ctx context.Context) (cold, after *loaded, err error) {
	if _, err := b.model(ctx, b.slow, "layer/model.safetensors", remedySize); err != nil {
		return nil, nil, err
	}
	at, empty := filepath.Join(b.folder, "image"), filepath.Join(b.folder, "empty")
	for _, folder := range []string{at, empty} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, nil, err
		}
	}
	layers := "lowerdir=" + empty + ":" + filepath.Join(b.place(b.slow.Kind), "layer")
	if err := unix.Mount("overlay", at, "overlay", unix.MS_RDONLY, layers); err != nil {
		return nil, nil, fmt.Errorf("mount an overlay: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(at, unix.MNT_DETACH)) }()
	loader, err := b.helper(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, loader.end()) }()
	path := filepath.Join(at, "model.safetensors")
	if cold, err = loader.do("load", path); err != nil {
		return nil, nil, err
	}
	if err := forget(path); err != nil {
		return nil, nil, err
	}
	if _, err := loader.do("read", path); err != nil {
		return nil, nil, err
	}
	after, err = loader.do("load", path)
	return cold, after, err
}

// preloadCase loads two models, each after a time in which the disk has nothing to do. The remedy reads the second one
// ahead in that time.
func (b *remedyBench) preloadCase(ctx context.Context) (cold, after *loaded, err error) {
	path, err := b.model(ctx, b.slow, "next.safetensors", remedySize)
	if err != nil {
		return nil, nil, err
	}
	loader, err := b.helper(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, loader.end()) }()
	first, err := b.model(ctx, b.slow, "first.safetensors", remedySize/8)
	if err != nil {
		return nil, nil, err
	}
	if _, err := loader.do("load", first); err != nil { // the loader is followed from here on
		return nil, nil, err
	}
	time.Sleep(2 * remedyIdle)
	if cold, err = loader.do("load", path); err != nil {
		return nil, nil, err
	}
	second, err := b.model(ctx, b.slow, "other.safetensors", remedySize)
	if err != nil {
		return nil, nil, err
	}
	if _, err := loader.do("preload", second); err != nil {
		return nil, nil, err
	}
	time.Sleep(2 * remedyIdle)
	after, err = loader.do("load", second)
	return cold, after, err
}
