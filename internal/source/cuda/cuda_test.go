//go:build linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
)

// device stands for the driver's: any program may open it, and few do.
const device = "/dev/full"

// program starts a process with files open. They are closed here.
func program(t *testing.T, paths ...string) (pid int) {
	t.Helper()
	var open []*os.File
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		open = append(open, f)
	}
	c := exec.Command("sleep", "60")
	c.ExtraFiles = open
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

func users(t *testing.T, s *Search, now time.Duration) []int {
	t.Helper()
	pids, err := s.Users(now)
	if err != nil && !errors.Is(err, ErrHidden) {
		t.Fatal(err)
	}
	return pids
}

// settled takes as many looks, a second apart, as it takes to look at all processes of this machine.
func settled(t *testing.T, s *Search, now *time.Duration) (pids []int) {
	t.Helper()
	users(t, s, *now)
	for range len(s.known)/(maxLooks/2) + 1 {
		*now += time.Second
		pids = users(t, s, *now)
	}
	return pids
}

// A program that has the device open is found, by its age alone within two seconds, and at the next look where the
// kernel reports an open of the device.
func TestUsers(t *testing.T) {
	for _, watched := range []bool{true, false} {
		s := New("", device, nil)
		t.Cleanup(s.Close)
		first, other := program(t, device), program(t, "/dev/null")
		now := 1000 * time.Hour
		got := settled(t, s, &now)
		if !slices.Contains(got, first) || slices.Contains(got, other) || slices.Contains(got, os.Getpid()) {
			t.Fatalf("got %v, want %d and neither %d nor this process", got, first, other)
		}
		if s.opened == nil {
			t.Skip("inotify does not work here")
		}
		if s.opened.Heard(); !watched {
			s.opened.Close()
			s.opened = nil
		}
		second := program(t, device)
		now += time.Second
		if got := users(t, s, now); slices.Contains(got, second) != watched {
			t.Errorf("watched %v: got %v in the first second, want %d: %v", watched, got, second, watched)
		}
		now += time.Second
		if got := users(t, s, now); !slices.Contains(got, second) {
			t.Errorf("watched %v: got %v in the next second, want %d", watched, got, second)
		}
	}
}

// A program that only asks the driver with NVML opens the device, too, and a file of its capabilities.
func TestAskingIsNoUse(t *testing.T) {
	caps := filepath.Join(t.TempDir(), "dev/nvidia-caps/nvidia-cap2")
	if err := os.MkdirAll(filepath.Dir(caps), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(caps, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New("", device, nil)
	t.Cleanup(s.Close)
	uses, before, after := program(t, device), program(t, caps, device), program(t, device, caps)
	now := 1000 * time.Hour
	got := settled(t, s, &now)
	if !slices.Contains(got, uses) || slices.Contains(got, before) || slices.Contains(got, after) {
		t.Errorf("got %v, want %d and neither %d nor %d", got, uses, before, after)
	}
}

// A program that closes the device uses it no more, and one that has ended does not.
func TestUsersThatLeave(t *testing.T) {
	s := New("", device, nil)
	t.Cleanup(s.Close)
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	now := 1000 * time.Hour
	if got := settled(t, s, &now); !slices.Contains(got, os.Getpid()) {
		t.Fatalf("got %v, want this process", got)
	}
	_ = f.Close()
	now += time.Minute
	if got := settled(t, s, &now); slices.Contains(got, os.Getpid()) {
		t.Errorf("after it was closed: got %v, want it without this process", got)
	}
}

// machine makes a /proc, and returns its root. Each process is as old as its number in seconds, and a child of parent.
func machine(t *testing.T, parent int, pids ...int) (root string) {
	t.Helper()
	root = t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const uptime = 100000
	write("proc/uptime", fmt.Sprintf("%d.00 1.00\n", uptime))
	flags := 0
	if parent == 2 { // kernel threads
		flags = 0x00200000
	}
	for _, pid := range pids {
		write("proc/"+strconv.Itoa(pid)+"/stat", fmt.Sprintf("%d (a) S %d 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0"+
			" 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pid, parent, flags, 100*(uptime-pid)))
	}
	if err := os.Symlink("/dev", filepath.Join(root, "dev")); err != nil {
		t.Fatal(err)
	}
	return root
}

// answers are those of a reader, with the processes that were read for.
type answers struct {
	process.Reader
	read  []int
	open  bool
	files int
	err   error
}

func (a *answers) HasDevice(of process.Key, _ uint64) (bool, int, error) {
	a.read = append(a.read, of.PID)
	return a.open, a.files, a.err
}

// fake returns a search whose readers are both made up.
func fake(root string, own *answers, more process.Reader) *Search {
	s := New(root, device, more)
	s.direct = own
	return s
}

// An hour costs few looks at processes that do not change, and a second at most maxLooks, at maxFiles open files.
func TestCost(t *testing.T) {
	var pids []int
	for pid := 1000; pid < 1400; pid++ {
		pids = append(pids, pid)
	}
	own := &answers{files: 4}
	s := fake(machine(t, 1, pids...), own, nil)
	t.Cleanup(s.Close)
	all := map[int]int{}
	for second := range 3600 {
		own.read = nil
		users(t, s, time.Duration(second+1)*time.Second)
		if len(own.read) > maxLooks {
			t.Fatalf("got %d looks in a second, want %d at most", len(own.read), maxLooks)
		}
		for _, pid := range own.read {
			all[pid]++
		}
	}
	if len(all) != len(pids) {
		t.Errorf("got looks at %d processes, want all %d", len(all), len(pids))
	}
	for pid, n := range all {
		if n > 40 { // the uptime stands still, so each has always the same age: 1,000 s or more
			t.Errorf("got %d looks at process %d in an hour, want less", n, pid)
		}
	}

	own.read, own.files = nil, 1024
	s = fake(machine(t, 1, pids...), own, nil)
	t.Cleanup(s.Close)
	if users(t, s, time.Second); len(own.read) != maxFiles/1024 {
		t.Errorf("got %d looks at processes with 1,024 files in a second, want %d", len(own.read), maxFiles/1024)
	}
}

// A new process comes first, also where the kernel has begun again from low numbers.
func TestNumbersThatBeginAgain(t *testing.T) {
	var pids []int
	for pid := 500; pid < 600; pid++ {
		pids = append(pids, pid, 29500+pid)
	}
	own := &answers{}
	s := fake(machine(t, 1, pids...), own, nil)
	t.Cleanup(s.Close)
	users(t, s, time.Second)
	own.read = nil
	s.root = machine(t, 1, append(pids, 700)...)
	users(t, s, 2*time.Second)
	users(t, s, 3*time.Second)
	if !slices.Contains(own.read, 700) {
		t.Errorf("got looks at %v, want one at process 700, which began last", own.read)
	}
}

// Threads of the kernel are not read, and nothing is where there is no device.
func TestWhatIsNotRead(t *testing.T) {
	own := &answers{}
	s := fake(machine(t, 2, 50, 51), own, nil)
	t.Cleanup(s.Close)
	for i := range 100 {
		users(t, s, time.Duration(i)*time.Minute)
	}
	without := fake(machine(t, 1, 50), own, nil)
	without.path = filepath.Join(t.TempDir(), "nvidia-uvm")
	if got := users(t, without, time.Second); got != nil || without.lists > 0 {
		t.Errorf("without a device: got %v and %d lists, want none", got, without.lists)
	}
	if len(own.read) > 0 {
		t.Errorf("got looks at %v, want none", own.read)
	}
	if err := os.WriteFile(without.path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if users(t, without, time.Hour); without.lists > 0 {
		t.Error("a file that is no device is treated as one")
	}
}

// Where the device has no file, the kernel's list of drivers has its number.
func TestDriverNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices")
	for text, want := range map[string]uint64{
		"Character devices:\n  1 mem\n195 nvidia\n509 nvidia-caps\n510 nvidia-uvm\n\nBlock devices:\n  7 loop\n": 0x1fe00,
		"Character devices:\n  1 mem\n511 nvidia-uvm-tools\n":                                                    0,
		"": 0,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := driverNumber(path); got != want {
			t.Errorf("%q: got %#x, want %#x", text, got, want)
		}
	}
}

// What this program may not see another one sees, and the lack of it is reported once.
func TestHiddenProcesses(t *testing.T) {
	own, more := &answers{err: syscall.EACCES}, &answers{open: true}
	root := machine(t, 1, 50, 51)
	s := fake(root, own, more)
	t.Cleanup(s.Close)
	if got, err := s.Users(time.Second); !slices.Equal(got, []int{51, 50}) || err != nil {
		t.Errorf("with a helper: got %v, %v, want both", got, err)
	}
	s = fake(root, own, nil)
	t.Cleanup(s.Close)
	for i, want := range []error{ErrHidden, nil, nil} {
		if got, err := s.Users(time.Duration(i+1) * time.Minute); len(got) > 0 || !errors.Is(err, want) {
			t.Errorf("minute %d: got %v, %v, want none and %v", i, got, err, want)
		}
	}
}

// The cost of a second in which nothing is due, with the processes of this machine.
func BenchmarkList(b *testing.B) {
	s := New("", device, nil)
	defer s.Close()
	now := 1000 * time.Hour
	for range 100 { // until all are known
		now += time.Second
		_, _ = s.Users(now)
	}
	for _, k := range s.known {
		k.due = 1 << 62
	}
	b.ReportMetric(float64(len(s.known)), "processes")
	b.ResetTimer()
	for range b.N {
		now += time.Second
		_, _ = s.Users(now)
	}
}

// The cost of a look at this process.
func BenchmarkLook(b *testing.B) {
	s := New("", device, nil)
	defer s.Close()
	_, _ = s.Users(time.Hour)
	s.known[os.Getpid()] = &known{start: 1}
	for range b.N {
		s.lookAtOne(os.Getpid(), 0, time.Hour)
	}
}
