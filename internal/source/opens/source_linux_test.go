//go:build amd64 || arm64

package opens

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) {
	fixture.Serve(programs)
	os.Exit(m.Run())
}

// programs run in a process of their own.
var programs = map[string]func(fixture.Facts){
	"files": filesProgram, "away": awayProgram, "storm": stormProgram, "ends": endsProgram,
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// monotonic is the time on CLOCK_MONOTONIC, in ns.
func monotonic() int {
	var now unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return int(now.Nano())
}

// The files of filesProgram.
const (
	modelFile  = "model.SafeTensors"
	dataFile   = "data.txt"
	smallFile  = "small.txt"
	smallModel = "small.bin"
	newFile    = "new.pt"
	logFile    = "job.log"

	modelSize = 2 << 20
	dataSize  = 100 << 10
	smallSize = 4 << 10
)

// makeFiles makes those that exist before.
func makeFiles(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, size := range map[string]int{
		modelFile: modelSize, dataFile: dataSize, smallFile: smallSize, smallModel: smallSize,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d := dir; d != "/"; d = filepath.Dir(d) { // for a program of another user
		_ = os.Chmod(d, 0o755)
	}
	return dir
}

// filesProgram reads, maps and writes files.
func filesProgram(f fixture.Facts) {
	dir := os.Args[1]
	read := func(name string, bytes int) (fd int) {
		fd, err := unix.Open(filepath.Join(dir, name), unix.O_RDONLY, 0)
		must(err)
		n, err := unix.Read(fd, make([]byte, bytes))
		must(err)
		if n != bytes {
			must(fmt.Errorf("read %d bytes of %s, want %d", n, name, bytes))
		}
		return fd
	}
	f["open"] = monotonic()
	model := read(modelFile, modelSize/2)
	f["opened"] = monotonic()
	mapped, err := unix.Mmap(model, 0, modelSize, unix.PROT_READ, unix.MAP_SHARED)
	must(err)
	must(unix.Close(model))
	for _, name := range []string{dataFile, smallFile, smallModel} {
		must(unix.Close(read(name, smallSize)))
	}
	for _, name := range []string{newFile, logFile} {
		fd, err := unix.Open(filepath.Join(dir, name), unix.O_WRONLY|unix.O_CREAT, 0o600)
		must(err)
		_, err = unix.Write(fd, make([]byte, smallSize))
		must(err)
		must(unix.Close(fd))
	}
	path, err := unix.Open(filepath.Join(dir, modelFile), unix.O_PATH, 0) // it opens nothing
	must(err)
	must(unix.Close(path))
	time.Sleep(20 * time.Millisecond)
	f["unmap"] = monotonic()
	must(unix.Munmap(mapped))
	f["unmapped"] = monotonic()
}

// awayProgram is of another user. It reads two files.
func awayProgram(fixture.Facts) {
	must(unix.Setresgid(65534, 65534, 65534))
	must(unix.Setresuid(65534, 65534, 65534))
	for _, name := range []string{dataFile, modelFile} {
		f, err := os.Open(filepath.Join(os.Args[1], name))
		must(err)
		must(f.Close())
	}
}

// stormProgram opens a file again and again. It says how often, and in how many budget windows.
func stormProgram(f fixture.Facts) {
	name := filepath.Join(os.Args[1], dataFile)
	begin := time.Now()
	for ; time.Since(begin) < time.Second; f["opens"]++ {
		fd, err := unix.Open(name, unix.O_RDONLY, 0)
		must(err)
		must(unix.Close(fd))
	}
	f["windows"] = int(time.Since(begin)/(100*time.Millisecond)) + 2
}

// endsProgram ends with a model open.
func endsProgram(fixture.Facts) {
	_, err := unix.Open(filepath.Join(os.Args[1], modelFile), unix.O_RDONLY, 0)
	must(err)
}

// needs skips a test where opens cannot be reported.
func needs(t testing.TB) {
	t.Helper()
	if err := schedule.Traceable("", "reporting opens"); err != nil {
		t.Skip(err)
	}
	if err := Supported(""); err != nil {
		t.Skip(err) // as on kernels without CONFIG_FUNCTION_TRACER, or whose rules forbid it
	}
}

// following returns a Source for the jobs of a schedule.Source.
func following(t testing.TB, values map[string]any) (*Source, *schedule.Source) {
	t.Helper()
	needs(t)
	threads, err := schedule.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = threads.Close() })
	open := func(with schedule.Tracing, _ Options) (Tracing, error) { return newTracer("", with, values) }
	s, err := New(open, threads, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, threads
}

// take returns the events of a job whose files are in a folder.
func take(s *Source, job, dir string) (list []Event, all bool) {
	all = s.Take(job, sample.Now().Mono, func(e *Event) {
		if e.Close || strings.HasPrefix(e.Path, dir) {
			list = append(list, *e)
		}
	})
	return list, all
}

// trace follows a program from its start to its end.
func trace(t *testing.T, values map[string]any, program string) (f fixture.Facts, list []Event, dir string) {
	t.Helper()
	s, threads := following(t, values)
	dir = makeFiles(t)
	p := fixture.Start(t, program, dir)
	if err := threads.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	if _, all := take(s, "job", dir); all {
		t.Error("got that the first call has all events, want that this is not known")
	}
	f = p.Finish()
	list, all := take(s, "job", dir)
	if !all {
		t.Error("got that events are missing")
	}
	for _, e := range list {
		if e.PID != p.PID() {
			t.Errorf("got an event of process %d, want %d: %+v", e.PID, p.PID(), e)
		}
	}
	return f, list, dir
}

// describe returns what an event is about, in short.
func describe(e *Event) string {
	word := "open"
	if e.Close {
		word = fmt.Sprintf("close at %d of", e.Position)
	}
	if e.Write {
		word = "write " + word
	}
	if !e.Model {
		word += " other"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", word, filepath.Base("/"+e.Path)))
}

func describeAll(list []Event) (all []string) {
	for i := range list {
		all = append(all, describe(&list[i]))
	}
	return all
}

func compare(t *testing.T, list []Event, want ...string) {
	t.Helper()
	if got := describeAll(list); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOpensAndCloses(t *testing.T) {
	f, list, dir := trace(t, map[string]any{"min_size": uint64(MinSize), "others_of": ofAll}, "files")
	compare(t, list,
		"open "+modelFile, "open other "+dataFile, "write open "+newFile, "write close at 4096 of /",
		"close at 1048576 of /")
	if t.Failed() {
		return
	}
	first, last := list[0], list[len(list)-1]
	var at unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, modelFile), &at); err != nil {
		t.Fatal(err)
	}
	if first.Inode != at.Ino || last.Inode != at.Ino || first.Device != last.Device || first.Size != modelSize {
		t.Errorf("got %+v and %+v; want inode %d, %d bytes", first, last, at.Ino, modelSize)
	}
	if first.Path != filepath.Join(dir, modelFile) {
		t.Errorf("got the path %s, want that of the file in %s", first.Path, dir)
	}
	within := func(e *Event, from, to string) {
		after, before := sample.OnMonotonic(time.Duration(f[from])), sample.OnMonotonic(time.Duration(f[to]))
		if e.At < after || e.At > before {
			t.Errorf("got the %s at %v, want it from %v to %v", describe(e), e.At, after, before)
		}
	}
	within(&first, "open", "opened")
	within(&last, "unmap", "unmapped") // it stays open as long as it is mapped
}

func TestFilesOfModelsAlone(t *testing.T) {
	_, list, _ := trace(t, values(Options{}), "files")
	compare(t, list, "open "+modelFile, "write open "+newFile, "write close at 4096 of /", "close at 1048576 of /")
}

// A user without the right to list other users' open files learns of files of models alone.
func TestOtherUsers(t *testing.T) {
	of := map[string]any{"min_size": uint64(MinSize), "others_of": ofOwner, "owner_uid": uint32(65533),
		"owner_gid": uint32(65534)}
	_, list, _ := trace(t, of, "away")
	compare(t, list, "open "+modelFile, "close at 0 of /")

	of["owner_uid"] = uint32(65534)
	_, list, _ = trace(t, of, "away")
	compare(t, list, "open other "+dataFile, "open "+modelFile, "close at 0 of /")
}

func TestEndOfProcess(t *testing.T) {
	_, list, _ := trace(t, values(Options{}), "ends")
	compare(t, list, "open "+modelFile, "close at 0 of /")
}

// Threads that are not followed, and jobs that have ended, are not reported.
func TestUnfollowed(t *testing.T) {
	s, threads := following(t, values(Options{Others: true}))
	dir := makeFiles(t)
	p := fixture.Start(t, "files", dir)
	if err := threads.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	take(s, "job", dir)
	threads.Unfollow("job")
	p.Finish()
	fixture.Start(t, "files", makeFiles(t)).Finish()
	other := fixture.Start(t, "ends", dir)
	if err := threads.Follow("other", []int{other.PID()}); err != nil { // in the same place
		t.Fatal(err)
	}
	other.Finish()
	if list, all := take(s, "job", dir); len(list) > 0 || all {
		t.Errorf("got %q of a job that is not followed any more, and that these are all: %t", describeAll(list), all)
	}
	list, _ := take(s, "other", dir)
	compare(t, list, "open "+modelFile, "close at 0 of /")
}

func TestStorm(t *testing.T) {
	s, threads := following(t, values(Options{Others: true}))
	dir := makeFiles(t)
	p := fixture.Start(t, "storm", dir)
	if err := threads.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	take(s, "job", dir)
	f := p.Finish()
	list, all := take(s, "job", dir)
	most := 256 * f["windows"]
	if f["opens"] <= most {
		t.Skipf("the program opened %d files in a second: too few for a storm", f["opens"])
	}
	if all || len(list) == 0 || len(list) > most {
		t.Errorf("got %d of %d opens, and that these are all: %t; want some, at most %d, and that others are missing",
			len(list), f["opens"], all, most)
	}
	if _, all := take(s, "job", dir); !all {
		t.Error("got that events are missing after the storm")
	}
	quiet := fixture.Start(t, "ends", dir)
	if err := threads.Follow("quiet", []int{quiet.PID()}); err != nil {
		t.Fatal(err)
	}
	take(s, "quiet", dir)
	quiet.Finish()
	if list, all := take(s, "quiet", dir); !all || len(list) != 2 {
		t.Errorf("got %q of another job, and that these are all: %t", describeAll(list), all)
	}
}

func TestModelsWake(t *testing.T) {
	s, threads := following(t, values(Options{Others: true}))
	dir := makeFiles(t)
	var marked []string
	mark := func(job string) { marked = append(marked, job) }
	for _, program := range []string{"storm", "ends"} {
		p := fixture.Start(t, program, dir)
		if err := threads.Follow(program, []int{p.PID()}); err != nil {
			t.Fatal(err)
		}
		p.Finish()
		s.EachOpened(mark)
	}
	if len(marked) != 1 || marked[0] != "ends" {
		t.Errorf("got the jobs %q, want the one that opened a model", marked)
	}
}

// TestWaitingEventsAreBounded: they wait for a look that does not come.
func TestWaitingEventsAreBounded(t *testing.T) {
	s := &Source{jobs: fixedJobs{}}
	s.counters = make([]byte, 8*(schedule.MaxJobs+2))
	record := make([]byte, headBytes+4)
	record[48] = opened
	copy(record[headBytes:], "/x\x00")
	for slot := 1; slot <= schedule.MaxJobs; slot++ {
		record[36], record[40] = byte(slot), 1
		for range maxJobEvents + 10 {
			s.add(record)
		}
	}
	waiting := 0
	for i := range s.slots {
		waiting += len(s.slots[i].events)
		if n := len(s.slots[i].events); n > maxJobEvents || i > 0 && !s.slots[i].missing {
			t.Errorf("slot %d: got %d events, and that some are missing: %t", i, n, s.slots[i].missing)
		}
	}
	if waiting != maxEvents || s.waiting != maxEvents {
		t.Errorf("got %d events, counted as %d, want %d", waiting, s.waiting, maxEvents)
	}
}

// fixedJobs has a job in each slot.
type fixedJobs struct{}

func (fixedJobs) Tracing() schedule.Tracing { return nil }

func (fixedJobs) JobIn(slot int) (string, uint32) { return fmt.Sprint("job", slot), 1 }
