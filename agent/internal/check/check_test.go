package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/golden"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("KUBERNETES_SERVICE_HOST") // the tests may run in a pod
	_ = os.Unsetenv("NVIDIA_VISIBLE_DEVICES")
	_ = os.Unsetenv("NVIDIA_DRIVER_CAPABILITIES")
	goleak.VerifyTestMain(m)
}

// steady are the checks that depend only on the files below Root.
func (m *machine) steady(t *testing.T) []Finding {
	var found []Finding
	ctx := t.Context()
	for _, look := range [][]Finding{m.disks(ctx), m.pressure(ctx), m.cgroup(ctx), m.processes(ctx), m.cores(ctx),
		m.container(ctx)} {
		found = append(found, look...)
	}
	return found
}

func text(root string, found []Finding) []byte {
	var b bytes.Buffer
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s (%s): %s\n", f.State, f.Area, f.What, f.Message)
		if f.Fix != "" {
			fmt.Fprintf(&b, "\tfix: %s\n", f.Fix)
		}
	}
	fmt.Fprintf(&b, "%s\nessential: %t\n", Summary(found), Essential(found))
	return bytes.ReplaceAll(b.Bytes(), []byte(root), []byte("ROOT"))
}

func TestFixtures(t *testing.T) {
	roots := map[string]string{
		"server": fixture.Root(t, "check_server"),
		"old":    fixture.Root(t, "check_old"),
		"empty":  t.TempDir(),
	}
	noPSI := fixture.Root(t, "check_server") // its kernel was built with PSI and it is switched off
	if err := os.RemoveAll(filepath.Join(noPSI, "proc/pressure")); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, noPSI, "boot/config-6.8.0-45-generic", []byte("CONFIG_PSI=y\nCONFIG_PSI_DEFAULT_DISABLED=y\n"))
	roots["psi_off"] = noPSI
	built := fixture.Root(t, "check_server")
	if err := os.RemoveAll(filepath.Join(built, "proc/pressure")); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, built, "boot/config-6.8.0-45-generic", []byte("# CONFIG_PSI is not set\n"))
	roots["psi_not_built"] = built
	half := fixture.Root(t, "check_server")
	fixture.Write(t, half, "proc/pressure/cpu", []byte("what is this\n"))
	fixture.Write(t, half, "proc/diskstats", []byte("259 0 nvme0n1 1 2 3\n8 0 sda 1 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n"))
	roots["garbage"] = half
	for name, root := range roots {
		t.Run(name, func(t *testing.T) {
			m := &machine{Options: Options{Root: root}, root: root}
			got := text(root, m.steady(t))
			golden.Check(t, filepath.Join("testdata", name+".txt"), got)
		})
	}
}

// lacking are refusals of parts for one cause.
func lacking(why string, parts ...string) (all bpf.Refusals) {
	for _, part := range parts {
		all = append(all, bpf.Refusal{What: part, Why: errors.New(why)})
	}
	return all
}

// TestLatency: one line reports whether operations are timed, and what is missing.
func TestLatency(t *testing.T) {
	const timed = "Each operation of a disk can be timed: percentiles are known, not only means."
	for _, test := range []struct {
		refused bpf.Refusals
		state   State
		message string
	}{
		{nil, Seen, timed},
		{lacking("needs more", bpf.Threads), Seen, timed},
		{lacking("needs more", bpf.DiskJobs), Limited,
			timed + " A part is left out: how long disks take for each job (needs more)."},
		{lacking("needs root", bpf.Threads, bpf.Disks), Limited,
			"Only the mean time of a disk's operations is known: counting how long disks take needs root."},
	} {
		m := &machine{Options: Options{Refusals: func(string) bpf.Refusals { return test.refused }}}
		found := m.latency(t.Context())
		if len(found) != 1 || found[0].State != test.state || found[0].Message != test.message || found[0].Fix != "" {
			t.Errorf("got %+v, want one: %s, %q, without a fix", found, test.state, test.message)
		}
	}
	if found := new(machine).latency(t.Context()); found != nil {
		t.Errorf("got %+v, want nothing where it is not asked", found)
	}
}

// TestScheduler: the finding says which evidence there is, why it is no better, and what would give it.
func TestScheduler(t *testing.T) {
	const (
		followed = "Every change of state of a job's threads can be read."
		sampled  = "A job's threads are looked at at random moments; for every change of their state: "
	)
	server, empty := fixture.Root(t, "check_server"), t.TempDir()
	for _, test := range []struct {
		root     string
		refused  bpf.Refusals
		state    State
		message  string
		evidence string
	}{
		{server, nil, Seen, followed, "schedule"},
		{server, lacking("needs more", bpf.Disks, bpf.DiskJobs), Seen, followed, "schedule"},
		{server, lacking("needs more", "new names", "page faults"), Limited,
			followed + " A part is left out: new names and page faults (needs more).", "schedule"},
		{server, lacking("needs root", bpf.Threads, bpf.Disks), Limited, sampled + "following the scheduler needs root.",
			"sampled"},
		{empty, lacking("needs BTF", bpf.Threads), Limited, sampled + "following the scheduler needs BTF.", "sampled"},
	} {
		of := ""
		m := &machine{root: test.root, Options: Options{Root: test.root, Refusals: func(root string) bpf.Refusals {
			of = root
			return test.refused
		}}}
		found := m.scheduler(t.Context())
		if len(found) != 1 || of != test.root {
			t.Fatalf("got %+v of %q, want one finding of %q", found, of, test.root)
		}
		f := found[0]
		if f.State != test.state || f.Message != test.message || f.Details["evidence"] != test.evidence {
			t.Errorf("got %+v, want %s, %q, %s", f, test.state, test.message, test.evidence)
		}
		if f.Fix != "" {
			t.Errorf("got the fix %q, want none: the message says what is needed", f.Fix)
		}
	}
	if found := (&machine{}).scheduler(t.Context()); found != nil {
		t.Errorf("skipped: got %+v, want nothing", found)
	}
}

// All checks run on the real machine and on broken roots: each finding is complete, and nothing is left behind.
func TestMachine(t *testing.T) {
	before := ownCgroups(t)
	for name, root := range map[string]string{"this machine": "", "empty": t.TempDir(),
		"server": fixture.Root(t, "check_server")} {
		found := Machine(t.Context(), Options{Root: root, Socket: filepath.Join(t.TempDir(), "s.sock")})
		areas := map[Area]bool{}
		for _, f := range found {
			areas[f.Area] = true
			switch f.State {
			case Seen, Limited, Missing, Off:
			default:
				t.Errorf("%s: got %+v, want a known state", name, f)
			}
			if f.What == "" || f.Message == "" || !strings.HasSuffix(f.Message, ".") ||
				strings.ContainsAny(f.Message+f.Fix, "\n\t") {
				t.Errorf("%s: got %+v, want a subject and one sentence", name, f)
			}
			if f.State == Seen && f.Fix != "" {
				t.Errorf("%s: nothing to fix: %+v", name, f)
			}
		}
		for _, area := range []Area{GPU, Disks, Pressure, Cgroup, Processes, CPU, API, Export} {
			if !areas[area] {
				t.Errorf("%s: got no finding of %s", name, area)
			}
		}
		if Essential(found) != (name != "empty") && name != "this machine" {
			t.Errorf("%s: essential %t", name, Essential(found))
		}
	}
	if after := ownCgroups(t); len(after) > len(before) {
		t.Errorf("left behind: %v", after)
	}
}

// ownCgroups are the cgroups that this process has made.
func ownCgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	m := &machine{root: "/"}
	for _, f := range m.cgroup(t.Context()) {
		if folder, ok := f.Details["folder"].(string); ok {
			more, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("stallspan-check-%d-*", os.Getpid())))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, more...)
		}
	}
	return found
}

func TestNothingIsMadeOutsideOfCgroupfs(t *testing.T) {
	folder := t.TempDir()
	if err := tryCgroup(folder); err == nil {
		t.Error("a plain folder was taken for a cgroup")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestHidepid(t *testing.T) {
	for mountinfo, want := range map[string]string{
		"":                                       "",
		"23 28 0:21 / /proc rw - proc proc rw\n": "",
		"23 28 0:21 / /proc rw - proc proc rw,hidepid=0\n":                                                              "",
		"23 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw,gid=4,hidepid=2\n":                                       "2",
		"23 28 0:21 / /proc rw - proc proc rw,hidepid=invisible\n":                                                      "invisible",
		"23 28 0:21 / /proc rw - proc proc rw,hidepid=2\n24 23 0:22 / /proc rw - proc proc rw\n":                        "",
		"23 28 0:21 / /mnt/proc rw - proc proc rw,hidepid=2\n24 28 0:22 / /proc rw - tmpfs tmpfs rw,hidepid=2\nrubbish": "",
	} {
		if got := hidepid(mountinfo); got != want {
			t.Errorf("%q: %q, not %q", mountinfo, got, want)
		}
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string]string{"": "", "a": "a", "a and b": "a b", "a, b and c": "a b c",
		"a, b, c, d, e, f and 1 other": "a b c d e f g", "a, b, c, d, e, f and 2 others": "a b c d e f g h"} {
		if got := list(strings.Fields(names)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestProtected: a process of this user whose bytes are denied is named, and no other.
func TestProtected(t *testing.T) {
	m := &machine{root: "/"}
	_, _, protected := m.others()
	for _, pid := range []string{"1", strconv.Itoa(os.Getpid())} {
		_, err := os.ReadFile("/proc/" + pid + "/io")
		want := os.IsPermission(err) && !othersOwn("/proc/"+pid)
		if got := slices.Contains(protected, pid); got != want {
			t.Errorf("process %s: got it among %v %v, want %v (%v)", pid, protected, got, want, err)
		}
	}
}

// TestImpossibleDisks: a counter that cannot be true is named with its file, with what is lost, and without advice that
// does not help.
func TestImpossibleDisks(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/sys/kernel/osrelease", []byte("6.18.3\n"))
	fixture.Write(t, root, "proc/diskstats", []byte(strings.Join([]string{
		"254 0 vda 41000 0 8400000 0 900 0 65000 0 0 0 0 0 0 0 0 0 0",
		"259 0 nvme0n1 1000 0 8000 90 0 0 0 0 0 500000 95 0 0 0 0 0 0",
		"259 1 nvme1n1 9000000 0 8000 90 0 0 0 0 0 500000 95 0 0 0 0 0 0", // its times may have wrapped
		"8 0 sda 1000 0 8000 90 0 0 0 0 4294967295 80 95 0 0 0 0 0 0",
		"8 16 sdb 1000 0 8000 90 0 0 0 0 0 80 95 0 0 0 0 0 0",
		"9 0 md0 41000 0 8400000 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "",
	}, "\n")))
	for _, name := range []string{"vda", "nvme0n1", "nvme1n1", "sda", "sdb", "md0"} {
		fixture.Write(t, root, "sys/class/block/"+name+"/queue/iostats", []byte("1\n"))
	}
	fixture.Write(t, root, "sys/class/block/md0/slaves/sda/stat", nil)
	fixture.Write(t, root, "sys/class/block/sdb/queue/iostats", []byte("0\n"))
	m := &machine{Options: Options{Root: root}, root: root}
	golden.Check(t, filepath.Join("testdata", "impossible.txt"), text(root, m.disks(t.Context())))

	// Fewer columns than the kernel's.
	fixture.Write(t, root, "proc/diskstats", []byte("254 0 vda 41 0 84 30 0 0 0 0 0 30 30\n"))
	found := m.disks(t.Context())
	last := found[len(found)-1]
	if last.What != "disk columns" || strings.Contains(last.Fix, "boot") ||
		!strings.Contains(last.Message, "another program writes") {
		t.Errorf("got %+v, want no advice to boot a kernel that is older", last)
	}
}

// TestDiskWithoutAnswer writes the counters of two disks as the kernel does while one of them completes nothing.
func TestDiskWithoutAnswer(t *testing.T) {
	root := t.TempDir()
	tick := func(i int) {
		file := fmt.Sprintf("8 0 sda 9 0 80 90 0 0 0 0 1 %[1]d %[1]d 0 0 0 0 0 0\n"+
			"8 16 sdb %[1]d 0 80 90 0 0 0 0 1 %[1]d %[1]d 0 0 0 0 0 0\n", 1000+i)
		next := filepath.Join(root, "next")
		if err := os.WriteFile(next, []byte(file), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(next, filepath.Join(root, "proc/diskstats")); err != nil {
			t.Error(err)
		}
	}
	fixture.Write(t, root, "sys/class/block/sda/stat", nil)
	fixture.Write(t, root, "sys/class/block/sdb/stat", nil)
	fixture.Write(t, root, "proc/sys/kernel/osrelease", []byte("6.18.3\n"))
	tick(0)
	source, err := disk.New(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	var first sample.Sample
	if err := source.Read(&first); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; ctx.Err() == nil; i++ {
			tick(i)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	found := stuck(t.Context(), source, first.Disks)
	stop()
	<-done
	if len(found) != 1 || !strings.HasPrefix(found[0].Message, "sda completed nothing for 2 s") {
		t.Errorf("got %+v, want sda alone", found)
	}
}
