package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// program says which executable a process runs.
func (t tree) program(pid int, name string) {
	t.Helper()
	link := filepath.Join(t.root, "proc", strconv.Itoa(pid), "exe")
	_ = os.Remove(link)
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
}

// A shell that runs a trainer leaves the lead to it; its workers do not lead.
func TestWrapper(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const shell, trainer, first, second = 10, 20, 31, 32
	put := func(step int) {
		tr.put(shell, 1, 100, 'S', counts{}, counts{})
		tr.put(trainer, shell, 200, 'R', counts{}, counts{})
		tr.put(first, trainer, 300, 'D', counts{cpuTicks: uint64(20 * step)}, counts{})
		tr.put(second, trainer, 301, 'D', counts{cpuTicks: uint64(20 * step)}, counts{})
	}
	put(0)
	tr.children(shell, trainer)
	tr.children(trainer, first, second)
	for _, pid := range []int{trainer, first, second} {
		tr.program(pid, "/usr/bin/python3")
	}
	tr.children(first)
	tr.children(second)
	tr.program(shell, "/bin/sh")
	leads(t, tr, shell, trainer, put)
}

// TestLauncher: Python's launchers run what they launch with their own executable.
func TestLauncher(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const launcher, trainer, worker = 10, 20, 30
	put := func(step int) {
		tr.put(launcher, 1, 100, 'S', counts{}, counts{})
		tr.put(trainer, launcher, 200, 'R', counts{cpuTicks: uint64(90 * step)}, counts{})
		tr.put(worker, trainer, 300, 'R', counts{cpuTicks: uint64(20 * step)}, counts{})
	}
	put(1)
	tr.children(launcher, trainer)
	tr.children(trainer, worker)
	tr.children(worker)
	for pid, arguments := range map[int]string{
		launcher: "python3\x00torchrun\x00train.py", trainer: "python3\x00train.py", worker: "python3\x00train.py",
	} {
		tr.program(pid, "/usr/bin/python3")
		tr.write(pid, "cmdline", arguments)
	}
	leads(t, tr, launcher, trainer, put)
}

// leads scans a job three times, after put has written the next step, and checks the leader.
func leads(t *testing.T, tr tree, root, leader int, put func(step int)) {
	t.Helper()
	s := New(tr.root)
	t.Cleanup(s.Close)
	defer s.Close()
	if err := s.Add("job", root, Options{}); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		put(2 + step)
		search(t, s)
	}
	if got := s.jobs[0].leaderPIDs(); !slices.Equal(got, []int{leader}) {
		t.Errorf("got the leaders %v, want %d", got, leader)
	}
}

// search has the next reading search for leaders.
func search(t *testing.T, s *Source) {
	t.Helper()
	s.jobs[0].ledAt -= minFindInterval
	s.jobs[0].judgedAt -= judgeInterval
	s.lookNow()
	read(t, s)
}

// A trainer with one worker may be idle without being a launcher.
func TestIdleTrainer(t *testing.T) {
	for _, arguments := range []string{
		"python3\x00train.py", "python3\x00-c\x00from multiprocessing.spawn import spawn_main\x00--multiprocessing-fork",
	} {
		tr := tree{t, t.TempDir()}
		const trainer, worker = 20, 30
		put := func(step int) {
			tr.put(trainer, 1, 100, 'S', counts{}, counts{})
			tr.put(worker, trainer, 200, 'R', counts{cpuTicks: uint64(90 * step)}, counts{})
		}
		put(1)
		tr.children(trainer, worker)
		tr.children(worker)
		for pid, arguments := range map[int]string{trainer: "python3\x00train.py", worker: arguments} {
			tr.program(pid, "/usr/bin/python3")
			tr.write(pid, "cmdline", arguments)
		}
		leads(t, tr, trainer, trainer, put)
	}
}

// TestHoldersLead: where it is known who holds memory of a GPU, those lead.
func TestHoldersLead(t *testing.T) {
	tr := tree{t, t.TempDir()}
	for i, pid := range []int{10, 20, 30} {
		tr.put(pid, min(pid-1, 10), uint64(100+i), 'R', counts{}, counts{})
		tr.program(pid, "/usr/bin/python3")
		tr.children(pid)
	}
	tr.children(10, 20, 30)
	s := New(tr.root)
	t.Cleanup(s.Close)
	defer s.Close()
	if err := s.Add("job", 10, Options{}); err != nil {
		t.Fatal(err)
	}
	s.Lead("job", []int{20, 30, 99})
	check := func(want ...int) {
		t.Helper()
		search(t, s)
		if got := s.jobs[0].leaderPIDs(); !slices.Equal(got, want) {
			t.Errorf("got the leaders %v, want %v", got, want)
		}
	}
	check(20, 30)
	tr.end(20)
	check(30)
	s.Lead("job", nil)
	check(10)
	s.Remove("job")
	if len(s.holders) != 0 {
		t.Errorf("%v is kept of a job that is not followed", s.holders)
	}
}

// family is what a test of leaders knows of a process.
type family struct {
	pid, parent int
	program     string
	arguments   string
	works       bool // it uses CPU time between two judgements
	reads       bool // it reads, and hardly uses any
	waits       bool // for a child to end
}

// TestWhoLeads has programs and those that they launch, in many shapes.
func TestWhoLeads(t *testing.T) {
	const python, shell = "/usr/bin/python3", "/bin/sh"
	for name, test := range map[string]struct {
		all  []family
		want int
	}{
		"a program that reads, and a daemon of MPI that polls": {[]family{
			{10, 1, python, "train", false, true, false}, {20, 10, "/usr/bin/orted", "orted", false, false, false}}, 10},
		"mpirun and its ranks": {[]family{
			{10, 1, "/usr/bin/mpirun", "mpirun", false, false, false}, {20, 10, python, "rank", true, false, false},
			{30, 10, python, "rank", true, false, false}}, 20},
		"a shell with a monitor and the training": {[]family{
			{10, 1, shell, "sh", false, false, false}, {20, 10, python, "monitor", false, false, false},
			{30, 10, python, "train", false, true, false}}, 30},
		"a server of notebooks and its kernel": {[]family{
			{10, 1, python, "jupyter lab", false, false, false}, {20, 10, python, "ipykernel_launcher", true, false, false}}, 20},
		"a driver of Ray, whose worker is below a daemon": {[]family{
			{10, 1, python, "driver", false, false, false}, {20, 10, "/opt/gcs_server", "gcs", false, false, false},
			{30, 10, "/opt/raylet", "raylet", false, false, false}, {40, 30, python, "ray::train", true, false, false}}, 40},
		"a training that waits for its forked workers": {[]family{
			{10, 1, python, "train", false, false, false}, {20, 10, python, "train", true, true, false},
			{30, 10, python, "train", true, true, false}}, 10},
		"a training with a service that works": {[]family{
			{10, 1, python, "train", true, false, false}, {20, 10, python, "service", true, false, false}}, 10},
		"an init of a container, a shell, and a launcher": {[]family{
			{10, 1, "/sbin/tini", "tini", false, false, false}, {20, 10, shell, "sh", false, false, false},
			{30, 20, python, "torchrun train", false, false, false}, {40, 30, python, "train 0", true, false, false},
			{50, 30, python, "train 1", true, false, false}, {60, 40, python, "train 0", true, true, false}}, 40},
		"processes without a common parent": {[]family{
			{10, 1, "/usr/bin/sleep", "sleep", false, false, false}, {20, 1, python, "train", false, true, false}}, 20},
		"a script that starts one short program after another": {[]family{
			{10, 1, python, "prepare", false, false, true}, {20, 10, shell, "xargs", false, false, true},
			{30, 20, python, "prepare a", true, true, false}, {40, 20, python, "prepare b", true, true, false}}, 20},
		"a shell that has just started its program": {[]family{
			{10, 1, shell, "sh", false, false, false}, {20, 10, python, "train", false, false, false}}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			tr := tree{t, t.TempDir()}
			put := func(step int) {
				for i, f := range test.all {
					var now counts
					if f.works {
						now[cpuTicks] = uint64(30 * step)
					}
					if f.reads {
						now[readBytes], now[readChars] = uint64(step)<<20, uint64(step)<<20
					}
					tr.put(f.pid, f.parent, uint64(100+i), 'S', now, counts{})
				}
			}
			put(1)
			for _, f := range test.all {
				var children []int
				for _, other := range test.all {
					if other.parent == f.pid {
						children = append(children, other.pid)
					}
				}
				tr.children(f.pid, children...)
				tr.program(f.pid, f.program)
				if f.waits {
					wait4 := map[string]int{"amd64": 61, "arm64": 260}[runtime.GOARCH]
					tr.write(f.pid, "syscall", fmt.Sprintf("%d 0xffffffff 0x0\n", wait4))
				}
				tr.write(f.pid, "cmdline", f.arguments)
			}
			s := New(tr.root)
			t.Cleanup(s.Close)
			defer s.Close()
			if err := s.Add("job", test.all[0].pid, Options{}); err != nil {
				t.Fatal(err)
			}
			j := s.jobs[0]
			for _, f := range test.all[1:] {
				if f.parent == 1 { // as another one of a cgroup
					m, err := s.admit(f.pid)
					if err != nil {
						t.Fatal(err)
					}
					j.members, j.byPID[f.pid] = append(j.members, m), m
				}
			}
			for step := range 4 {
				put(2 + step)
				search(t, s)
			}
			if got := j.leaderPIDs(); !slices.Equal(got, []int{test.want}) {
				t.Errorf("got the leaders %v, want %d", got, test.want)
			}
		})
	}
}
