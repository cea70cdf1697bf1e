package looking

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/source/process"
)

// reported are opens that a test reports.
type reported struct {
	events  []opens.Event
	missing bool
}

func (r *reported) Take(_ string, until time.Duration, visit func(*opens.Event)) (all bool) {
	n := 0
	for ; n < len(r.events) && r.events[n].At <= until; n++ {
		visit(&r.events[n])
	}
	r.events = r.events[n:]
	all, r.missing = !r.missing, false
	return all
}

// refusing refuses to list the files of some processes.
type refusing struct {
	*crowd
	pids []int
}

func (r refusing) ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error) {
	if slices.Contains(r.pids, of.PID) {
		return process.Files{}, syscall.EACCES
	}
	return r.crowd.ModelFiles(of, want)
}

func describe(events []detect.Event) (all []string) {
	for _, e := range events {
		word := "open"
		if e.Close {
			word = "close"
		}
		all = append(all, fmt.Sprint(word, " ", e.Path, " by ", e.PID))
	}
	return all
}

func TestReportedOpens(t *testing.T) {
	c := newCrowd(t, 1, 2, true)
	r := &reported{}
	c.looker.config.Opens = r
	c.look() // of the processes, both are known now
	at := func(after time.Duration) time.Duration { return c.at + after }
	const model, data = "/models/a.safetensors", "/data/1.txt"
	r.events = []opens.Event{
		{At: at(10 * time.Millisecond), PID: 1, Path: model, Device: 7, Inode: 8, Size: 1 << 30, Model: true},
		{At: at(20 * time.Millisecond), PID: 2, Path: data, Device: 7, Inode: 9, Size: 1 << 20},
		{At: at(30 * time.Millisecond), PID: 2, Path: "/usr/lib/libc.so", Device: 7, Inode: 10, Size: 1 << 20},
		{At: at(40 * time.Millisecond), PID: 3, Device: 7, Inode: 8, Position: 99, Close: true, Model: true}, // it has ended
		{At: at(50 * time.Millisecond), PID: 2, Device: 7, Inode: 77, Close: true, Model: true},              // opened before
		{At: at(often + time.Millisecond), PID: 1, Path: data, Device: 7, Inode: 9},
	}
	c.look()
	f := c.newest["job 0"]
	want := []string{"open " + model + " by 1", "open " + data + " by 2", "close " + model + " by 3"}
	if got := describe(f.Events); !slices.Equal(got, want) || !f.Exact {
		t.Errorf("got %q, all %t; want %q, all", got, f.Exact, want)
	}
	if f.Events[2].Offset != 99 || f.MinSize != opens.MinSize {
		t.Errorf("got %+v, at least %d bytes; want the position 99 and %d bytes", f.Events[2], f.MinSize, opens.MinSize)
	}
	key := detect.FileKey{Device: 7, Inode: 8}
	if slices.ContainsFunc(f.Files, func(x detect.File) bool { return x.Path == model && x.Key != key }) {
		t.Errorf("got the files %+v, want the numbers %+v of the report", f.Files, key)
	}
	r.missing = true
	c.look()
	if f = c.newest["job 0"]; len(f.Events) != 1 || f.Exact {
		t.Errorf("got %q, all %t; want one, and that others are missing", describe(f.Events), f.Exact)
	}
	c.look()
	if f = c.newest["job 0"]; len(f.Events) != 0 || !f.Exact {
		t.Errorf("got %q, all %t; want none, and that this is all", describe(f.Events), f.Exact)
	}
}

// A process that was there before and joins a job now opened files without a report.
func TestJoinedProcess(t *testing.T) {
	c := newCrowd(t, 1, 1, true)
	c.looker.config.Opens = &reported{}
	c.look()
	c.look()
	if !c.newest["job 0"].Exact {
		t.Fatal("got that opens are missing, want all of them")
	}
	c.reading = append(c.reading, sample.Process{PID: 2, Job: "job 0", Started: time.Second})
	dir := filepath.Join(c.looker.config.Root, "proc/2")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "statm"), []byte("1000 900 100 1 0 2 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		c.look()
		if got := c.newest["job 0"].Exact; got != want {
			t.Errorf("got that these are all opens: %t, want %t", got, want)
		}
	}
}

// Of a process whose open files may not be listed, nothing is passed on, nor of an unknown one next to it.
func TestOpensThatMayNotBeSeen(t *testing.T) {
	for _, test := range []struct {
		refused []int
		want    []int // processes
	}{{nil, []int{1, 2, 99}}, {[]int{2}, []int{1}}, {[]int{1, 2}, nil}} {
		c := newCrowd(t, 1, 2, true)
		r := &reported{}
		c.looker.config.Opens = r
		c.looker.direct = refusing{c, test.refused}
		for range 3 {
			c.look()
		}
		for _, pid := range []int{1, 2, 99} {
			r.events = append(r.events, opens.Event{At: c.at + time.Millisecond, PID: pid, Inode: uint64(pid),
				Path: "/models/" + strconv.Itoa(pid) + ".safetensors", Model: true})
		}
		c.look()
		var got []int
		for _, e := range c.newest["job 0"].Events {
			got = append(got, e.PID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("refused %v: got events of the processes %v, want of %v", test.refused, got, test.want)
		}
	}
}

// The files that are remembered are bounded.
func TestManyOpens(t *testing.T) {
	o := opened{}
	for n := range 10 * maxOpened {
		e := opens.Event{Path: "/data/" + strconv.Itoa(n), Inode: uint64(n)}
		if _, ok := o.event(&e); !ok {
			t.Fatalf("got that file %d is left out", n)
		}
		if len(o.paths) > maxOpened || len(o.keys) > maxOpened {
			t.Fatalf("got %d and %d files, want %d at most", len(o.paths), len(o.keys), maxOpened)
		}
	}
}
