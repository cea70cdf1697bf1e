package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// program is a process of a fixture with ends of pipes.
type program struct {
	pid, parent, session int
	terminal             int
	start                uint64
	ids                  string // "" for 1000
	nspid                string // "" for no PID namespace of its own
	cgroup               string
	reads, writes        []int
	read                 uint64 // bytes
}

// script is the cgroup of the job.
const scope = "0::/user.slice/session-2.scope\n"

func (t tree) running(p program) {
	t.Helper()
	t.write(p.pid, "stat", fmt.Sprintf("%d (x) S %d 1 %d %d -1 4194304 1 0 0 0 1 0 0 0 20 0 1 0 %d 0 0 184467440737095\n",
		p.pid, p.parent, p.session, p.terminal, p.start))
	t.write(p.pid, "io", fmt.Sprintf("rchar: %d\nwchar: 1\nread_bytes: %d\nwrite_bytes: 0\n", p.read, p.read))
	if p.ids == "" {
		p.ids = "1000\t1000\t1000\t1000"
	}
	t.write(p.pid, "status",
		fmt.Sprintf("Name:\tx\nUid:\t%s\nGid:\t100\t100\t100\t100\nNSpid:\t%d%s\n", p.ids, p.pid, p.nspid))
	t.write(p.pid, "cgroup", p.cgroup)
	for i, pipe := range p.reads {
		t.pipe(p.pid, i, pipe, "0100000")
	}
	for i, pipe := range p.writes {
		t.pipe(p.pid, 10+i, pipe, "0100001")
	}
}

func (t tree) pipe(pid, fd, pipe int, flags string) {
	t.Helper()
	t.write(pid, fmt.Sprintf("fdinfo/%d", fd), "pos:\t0\nflags:\t"+flags+"\nmnt_id:\t14\n")
	link := filepath.Join(t.root, "proc", fmt.Sprint(pid), "fd", fmt.Sprint(fd))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fmt.Sprintf("pipe:[%d]", pipe), link); err != nil {
		t.Fatal(err)
	}
}

// trained is a source that follows process 100, which reads pipe 1, of a shell 10 with the session 10.
func (t tree) trained() *Source {
	t.Helper()
	fixture.Write(t, t.root, "proc/uptime", []byte("20.00 10.00\n"))
	t.running(program{pid: 10, parent: 1, session: 10, terminal: 34816, start: 1, cgroup: scope, writes: []int{1}})
	t.running(program{pid: 100, parent: 10, session: 10, terminal: 34816, start: 1000, cgroup: scope, reads: []int{1}})
	s := New(t.root)
	t.Cleanup(s.Close)
	if err := s.Add("train", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// feederList takes a reading after a search.
func feederList(t testing.TB, s *Source) (list []sample.Process, all *sample.Sample) {
	t.Helper()
	s.lookNow()
	s.searched, s.jobs[0].feeding.due = 0, 0
	all = read(t, s)
	list = slices.DeleteFunc(slices.Clone(all.Processes), func(p sample.Process) bool {
		return !p.Feeder || p.Job != s.jobs[0].id
	})
	return list, all
}

// feeders returns those that a search finds.
func (t tree) feeders(s *Source) (pids []int) {
	t.Helper()
	list, _ := feederList(t, s)
	for _, p := range list {
		pids = append(pids, p.PID)
	}
	return pids
}

func TestWhoMayFeed(t *testing.T) {
	const other = "0::/user.slice/session-3.scope\n"
	tar := program{pid: 90, parent: 10, session: 10, terminal: 34816, start: 990, cgroup: scope, writes: []int{1}}
	for name, test := range map[string]struct {
		change func(*program)
		want   bool
	}{
		"the same session and cgroup":         {func(*program) {}, true},
		"another session, the same cgroup":    {func(p *program) { p.session = 80 }, true},
		"the same session, another cgroup":    {func(p *program) { p.cgroup = other }, true},
		"another session and cgroup":          {func(p *program) { p.session, p.cgroup = 80, other }, false},
		"no session is known, another cgroup": {func(p *program) { p.session, p.cgroup = 0, other }, false},
		"another user":                        {func(p *program) { p.ids = "1001\t1001\t1001\t1001" }, false},
		"it may become another user":          {func(p *program) { p.ids = "1000\t1000\t0\t1000" }, false},
		"another PID namespace":               {func(p *program) { p.nspid = "\t1" }, false},
		"the shell of another terminal":       {func(p *program) { p.session, p.parent = 90, 1 }, false},
		"the end is for the program alone":    {func(p *program) { p.writes = nil }, false},
		"it only reads":                       {func(p *program) { p.reads, p.writes = p.writes, nil }, false},
		"another pipe":                        {func(p *program) { p.writes = []int{2} }, false},
		"a child of the job":                  {func(p *program) { p.parent = 100 }, false}, // the scan for children finds it
	} {
		t.Run(name, func(t *testing.T) {
			tree := tree{t, t.TempDir()}
			s := tree.trained()
			p := tar
			test.change(&p)
			tree.running(p)
			if len(p.writes) == 0 && len(p.reads) == 0 {
				tree.pipe(p.pid, 10, 1, "02100001") // O_CLOEXEC
			}
			if got := len(tree.feeders(s)) > 0; got != test.want {
				t.Errorf("it feeds the job: got %t, want %t", got, test.want)
			}
		})
	}
}

// Cgroups that are all roots say nothing.
func TestFeederInRootCgroup(t *testing.T) {
	tree := tree{t, t.TempDir()}
	s := tree.trained()
	tree.write(100, "cgroup", "1:name=systemd:/\n0::/\n")
	tree.running(program{pid: 90, session: 80, start: 990, cgroup: "1:name=systemd:/\n0::/\n", writes: []int{1}})
	if got := tree.feeders(s); got != nil {
		t.Errorf("got %v, want none", got)
	}
}

// What a program did before it fed the job does not count. What one did that began with the job does, although it is
// found later.
func TestFeederCountsFromThenOn(t *testing.T) {
	for name, test := range map[string]struct {
		start, want uint64
	}{
		"long before the job":                 {500, 300},
		"after the job, but before it fed it": {2500, 300},
		"a moment ago":                        {2950, 1300},
	} {
		t.Run(name, func(t *testing.T) {
			tree := tree{t, t.TempDir()}
			s := tree.trained()
			fixture.Write(t, tree.root, "proc/uptime", []byte("30.00 10.00\n"))
			p := program{pid: 90, parent: 10, session: 10, start: test.start, cgroup: scope, writes: []int{1}, read: 1000}
			tree.running(p)
			if got := tree.feeders(s); !slices.Equal(got, []int{90}) {
				t.Fatalf("got the feeders %v", got)
			}
			tree.write(90, "io", "rchar: 0\nread_bytes: 1300\nwrite_bytes: 0\n")
			got := read(t, s)
			if got.Jobs[0].ReadBytes != test.want {
				t.Errorf("got %d bytes, want %d", got.Jobs[0].ReadBytes, test.want)
			}
			// They stay when it has ended, and it has no heir in the job.
			tree.end(90)
			for range 3 {
				s.lookNow()
				got = read(t, s)
			}
			if j := got.Jobs[0]; j.ReadBytes != test.want || j.Processes != 1 {
				t.Errorf("later: got %d bytes and %d processes, want %d and 1", j.ReadBytes, j.Processes, test.want)
			}
		})
	}
}

// A feeder that closes its end stays for a moment, and leaves what it did.
func TestFeederLeaves(t *testing.T) {
	tree := tree{t, t.TempDir()}
	s := tree.trained()
	tree.running(program{pid: 90, parent: 10, session: 10, start: 2001, cgroup: scope, writes: []int{1}, read: 1000})
	tree.feeders(s)
	if err := os.Remove(filepath.Join(tree.root, "proc/90/fdinfo/10")); err != nil {
		t.Fatal(err)
	}
	tree.pipe(90, 5, 7, "0100001")
	if got := tree.feeders(s); !slices.Equal(got, []int{90}) {
		t.Errorf("at once: got %v, want that it stays", got)
	}
	s.jobs[0].byPID[90].fedAt -= 2 * feederGone
	list, all := feederList(t, s)
	if len(list) > 0 || all.Jobs[0].ReadBytes != 1000 || len(s.procs) != 1 {
		t.Errorf("got %+v, %+v; want that it left, and what it has read", list, all.Jobs[0])
	}
}

// Feeders of a job are bounded, and so is the way to them.
func TestManyFeeders(t *testing.T) {
	tree := tree{t, t.TempDir()}
	s := tree.trained()
	for i := range 2 * maxFeeders {
		tree.running(program{pid: 1000 + i, parent: 10, session: 10, start: 990, cgroup: scope,
			reads: []int{i + 2}, writes: []int{i + 1}})
	}
	// A search is as short on a busy machine as on another one, and goes on later.
	all := func() (got []int) {
		for limit := time.Now().Add(time.Minute); len(got) < maxFeeders && time.Now().Before(limit); {
			s.searched, s.jobs[0].feeding.due = 0, 0
			got = tree.feeders(s)
		}
		return got
	}
	if got := all(); len(got) != maxFeeders {
		t.Errorf("in a row: got %d feeders, want %d", len(got), maxFeeders)
	}
	for i := range maxFeeders {
		tree.end(1000 + i)
	}
	for i := range 2 * maxFeeders {
		tree.running(program{pid: 2000 + i, parent: 10, session: 10, start: 990, cgroup: scope, writes: []int{1}})
	}
	if got := all(); len(got) != maxFeeders {
		t.Errorf("side by side: got %d feeders, want %d", len(got), maxFeeders)
	}
	for i := range 2 * maxEnds {
		tree.pipe(100, 100+i, 100+i, "0100000")
	}
	tree.feeders(s)
	if got := len(s.jobs[0].byPID[100].ends.open); got != maxEnds {
		t.Errorf("got %d ends of pipes, want %d", got, maxEnds)
	}
}

// A search that finds nothing is repeated less and less often, and at once if another pipe is there.
func TestSearchesBecomeRare(t *testing.T) {
	tree := tree{t, t.TempDir()}
	s := tree.trained()
	j := s.jobs[0]
	// A search is as short on a busy machine as on another one, and goes on in the next reading.
	search := func() (processes int) {
		for limit := time.Now().Add(time.Minute); ; {
			s.searched = 0
			s.lookNow()
			processes = read(t, s).Jobs[0].Processes
			if j.feeding.after == 0 || time.Now().After(limit) {
				return processes
			}
		}
	}
	search()
	for i, want := range []time.Duration{2 * minSearch, 4 * minSearch} {
		j.feeding.due = 0
		search()
		if j.feeding.wait != want {
			t.Errorf("search %d: got that the next is in %v, want %v", i+2, j.feeding.wait, want)
		}
	}
	tree.running(program{pid: 90, parent: 10, session: 10, start: 990, cgroup: scope, writes: []int{1}})
	if got := search(); got != 1 {
		t.Errorf("before the next search: got %d processes, want 1", got)
	}
	tree.running(program{pid: 91, parent: 10, session: 10, start: 990, cgroup: scope, writes: []int{2}})
	tree.pipe(100, 5, 2, "0100000")
	if got := search(); got != 3 {
		t.Errorf("with another pipe: got %d processes, want 3", got)
	}
}

// A job in a cgroup of its own has the CPU time of its feeders as well, which are outside.
func TestFeederOfCgroup(t *testing.T) {
	tree := tree{t, fixture.Root(t, "process_training")}
	fixture.Write(t, tree.root, "sys/fs/cgroup/job/cgroup.procs", []byte("100\n"))
	tree.trained().Remove("train")
	s := New(tree.root)
	t.Cleanup(s.Close)
	t.Cleanup(s.Close)
	if err := s.Add("train", 100, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	p := program{pid: 90, parent: 10, session: 10, start: 2001, cgroup: scope, writes: []int{1}}
	tree.running(p)
	tree.children(90, 91)
	tree.running(program{pid: 91, parent: 90, session: 10, start: 2005, cgroup: scope})
	tree.feeders(s)
	if got := tree.feeders(s); !slices.Equal(got, []int{90, 91}) {
		t.Fatalf("got the feeders %v, want one and its child", got)
	}
	if got := read(t, s).Jobs[0].CPUTime; got != 20*time.Millisecond {
		t.Errorf("got a CPU time of %v, want that of the feeders, 20ms", got)
	}
	if err := s.Add("cgroup", -1, Options{Cgroup: "/job", OwnScope: true}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(s.jobs)
	if got := tree.feeders(s); got != nil {
		t.Errorf("of a cgroup that matches a pattern: got the feeders %v, want none", got)
	}
}

func TestPipeOf(t *testing.T) {
	for link, want := range map[string]uint64{
		"pipe:[244617]": 244617, "pipe:[18446744073709551615]": 1<<64 - 1, "socket:[5]": 0, "pipe:[]": 0, "pipe:[5 ]": 0,
		"pipe:[-1]": 0, "/tmp/pipe:[5]": 0, "5]": 0, "": 0, strings.Repeat("pipe:[", 2) + "5]": 0,
	} {
		if got := pipeOf(link); got != want {
			t.Errorf("%q: got %d, want %d", link, got, want)
		}
	}
}
