//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// readProgram reads blocks of a device or file, without the page cache.
func readProgram(f fixture.Facts) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	file, err := os.OpenFile(os.Args[1], os.O_RDONLY|unix.O_DIRECT, 0)
	must(err)
	var count int
	_, err = fmt.Sscan(os.Args[2], &count)
	must(err)
	buf, err := unix.Mmap(-1, 0, blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	must(err)
	for i := range count {
		_, err := file.ReadAt(buf, int64(i)*blockBytes)
		must(err)
	}
	f["reads"] = count
}

const blockBytes = 4096

// countDisks counts how long disks take, for no job.
func countDisks(t testing.TB) *Source {
	t.Helper()
	needsPart(t, Disks, "needs BPF for latency: ")
	s := NewFrom(Local(""), Wanted{Disks: true}, "")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// countJobs counts it for jobs, too.
func countJobs(t testing.TB) *Source {
	t.Helper()
	needs(t)
	needsPart(t, DiskJobs, "needs BPF for latency: ")
	s := NewFrom(Local(""), Wanted{Threads: true, Disks: true}, "")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func slow(t testing.TB, kind slowdisk.Kind, o slowdisk.Options) *slowdisk.Disk {
	t.Helper()
	for _, need := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("needs FUSE and loop devices: ", err)
		}
	}
	d, err := slowdisk.Open(t.Context(), kind, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// file writes blocks to a disk, which is fast until then.
func file(t testing.TB, d *slowdisk.Disk, blocks int) string {
	t.Helper()
	path := filepath.Join(d.Dir, fmt.Sprintf("file-%d", blocks))
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), blocks*blockBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	return path
}

// counted returns the histogram of a disk's operations; an empty one without operations.
func counted(t testing.TB, s *Source, disk string, operation sample.Operation, job string) *sample.LatencyHistogram {
	t.Helper()
	reading := sample.Sample{Edge: true}
	if err := s.Latencies().Read(&reading); err != nil {
		t.Fatal(err)
	}
	for _, l := range reading.Latencies {
		if l.Disk == disk && l.Operation == operation && l.Job == job {
			return l.LatencyHistogram
		}
	}
	return &sample.LatencyHistogram{}
}

// placesOfJobs returns the cells that operations of jobs have.
func placesOfJobs(t testing.TB, s *Source) map[int]key {
	t.Helper()
	if err := s.Latencies().Read(&sample.Sample{Edge: true}); err != nil {
		t.Fatal(err)
	}
	places := map[int]key{}
	for i, h := range s.latencies.known {
		if h.key.job != 0 {
			places[i] = h.key
		}
	}
	return places
}

// stats reads a disk's counters from /proc/diskstats.
func stats(t testing.TB, name string) sample.Disk {
	t.Helper()
	disks, err := disk.New("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disks.Close() }()
	var reading sample.Sample
	if err := disks.Read(&reading); err != nil {
		t.Fatal(err)
	}
	for _, d := range reading.Disks {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("/proc/diskstats has no %s", name)
	return sample.Disk{}
}

func run(t testing.TB, path string, reads int) {
	t.Helper()
	fixture.Start(t, "read", path, fmt.Sprint(reads)).Finish()
}

// TestSameAsDiskstats: the histogram counts the operations that /proc/diskstats counts, and adds up to the same time.
func TestSameAsDiskstats(t *testing.T) {
	needs(t)
	for _, delay := range []time.Duration{2 * time.Millisecond, 12 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			d := slow(t, slowdisk.Parallel, slowdisk.Options{Size: 64 << 20, Delay: delay})
			path := file(t, d, 200)
			s := countDisks(t)
			before := stats(t, d.Device)
			run(t, path, 200)
			// Writes with a flush, which the kernel makes two or three requests of and counts as one.
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if _, err := f.WriteAt([]byte("y"), int64(i)*blockBytes); err != nil {
					t.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			_ = f.Close()
			reads := counted(t, s, d.Device, sample.ReadOperation, "")
			writes := counted(t, s, d.Device, sample.WriteOperation, "")
			flushes := counted(t, s, d.Device, sample.FlushOperation, "")
			after := stats(t, d.Device)
			for _, c := range []struct {
				what  string
				h     *sample.LatencyHistogram
				ios   uint64
				ticks time.Duration
				least uint64
			}{
				{"reads", reads, after.ReadIOs - before.ReadIOs, after.ReadTicks - before.ReadTicks, 200},
				{"writes", writes, after.WriteIOs - before.WriteIOs, after.WriteTicks - before.WriteTicks, 10},
				{"flushes", flushes, after.FlushIOs - before.FlushIOs, after.FlushTicks - before.FlushTicks, 10},
			} {
				t.Logf("%s: %d, diskstats %d; mean %v, await %v; p50 %v, p99 %v, max %v", c.what, c.h.Count(), c.ios,
					c.h.Sum/time.Duration(max(1, c.h.Count())), c.ticks/time.Duration(max(1, c.ios)), c.h.Quantile(0.5),
					c.h.Quantile(0.99), c.h.Max())
				// The kernel of some virtual machines misses a tracepoint now and then.
				if got := c.h.Count(); got > c.ios || got+2 < c.ios || c.ios < c.least {
					t.Errorf("%s: counted %d, and /proc/diskstats %d; want the same, and at least %d", c.what, c.h.Count(), c.ios,
						c.least)
				}
				// diskstats rounds the sum down to milliseconds at both readings.
				missed := time.Duration(c.ios-c.h.Count()) * c.h.Max()
				if off := (c.h.Sum - c.ticks).Abs(); off > 2*time.Millisecond+c.ticks/50+missed {
					t.Errorf("%s: they took %v, and in /proc/diskstats %v", c.what, c.h.Sum, c.ticks)
				}
			}
			if p50 := reads.Quantile(0.5); p50 < delay || p50 > delay+delay/4+time.Millisecond {
				t.Errorf("half of the reads took at most %v, want %v", p50, delay)
			}
			if s.Latencies().Left() != 0 {
				t.Errorf("%d operations had no place", s.Latencies().Left())
			}
		})
	}
}

// TestJobs: each of two jobs on one disk has its own operations.
func TestJobs(t *testing.T) {
	d := slow(t, slowdisk.Parallel, slowdisk.Options{Size: 64 << 20, Delay: 2 * time.Millisecond})
	path := file(t, d, 300)
	s := countJobs(t)
	job := func(name string, reads int) *fixture.Program {
		p := fixture.Start(t, "read", path, fmt.Sprint(reads))
		if err := s.Follow(name, []int{p.PID()}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := job("first", 300), job("second", 40)
	ended := first.Run()
	second.Finish()
	<-ended
	run(t, path, 25) // of no job
	of := map[string]uint64{"first": 300, "second": 40}
	for _, name := range []string{"first", "second", ""} {
		h := counted(t, s, d.Device, sample.ReadOperation, name)
		want := of[name]
		if name == "" {
			want = of["first"] + of["second"] + 25
		}
		// A program's code may be read from the disk, too, and the loop device reads ahead.
		if of[name] = h.Count(); of[name]+2 < want || of[name] > want+5 {
			t.Errorf("reads of job %q: %d, want %d", name, of[name], want)
		}
		if p50 := h.Quantile(0.5); p50 < 2*time.Millisecond || p50 > 4*time.Millisecond {
			t.Errorf("half of the reads of job %q took at most %v, want 2 ms", name, p50)
		}
	}
	// Another job in the slot of the first begins from zero.
	s.Unfollow("first")
	third := job("third", 12)
	if got := counted(t, s, d.Device, sample.ReadOperation, "third").Count(); got != 0 {
		t.Errorf("the third job has %d reads before its first, want none", got)
	}
	third.Finish()
	if got := counted(t, s, d.Device, sample.ReadOperation, "third").Count(); got < 10 || got > 12 {
		t.Errorf("the third job has %d reads, want 12", got)
	}
	if got := counted(t, s, d.Device, sample.ReadOperation, "first").Count(); got != 0 {
		t.Errorf("the first job has %d reads after it ended, want none", got)
	}
}

// TestPlaceOfAnEndedJob: when there is no free cell, a job takes that of one that has ended, and begins from zero. What
// finds no place is counted.
func TestPlaceOfAnEndedJob(t *testing.T) {
	d := slow(t, slowdisk.Parallel, slowdisk.Options{Size: 64 << 20})
	path := file(t, d, 300)
	s := countJobs(t)
	follow := func(name string) *fixture.Program {
		p := fixture.Start(t, "read", path, "300")
		if err := s.Follow(name, []int{p.PID()}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := follow("first")
	first.Finish()
	if got := counted(t, s, d.Device, sample.ReadOperation, "first").Count(); got < 298 {
		t.Fatalf("the first job has %d reads, want 300", got)
	}
	// All cells of jobs are in use from now on.
	var full [directoryBytes]byte
	directory := s.tracing.(*Tracer).programs.Maps["directory"]
	if err := directory.Lookup(uint32(0), full[:]); err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(full[:], cells)
	if err := directory.Put(uint32(0), full[:]); err != nil {
		t.Fatal(err)
	}
	second := follow("second") // in a slot of its own
	second.Finish()
	if got := counted(t, s, d.Device, sample.ReadOperation, "second").Count(); got != 0 || s.Latencies().Left() < 290 {
		t.Errorf("the second job has %d reads, and %d had no place, want none and 300", got, s.Latencies().Left())
	}
	before := placesOfJobs(t, s)
	s.Unfollow("first")
	refused := s.Latencies().Left()
	third := fixture.Start(t, "read", path, "300")
	if err := s.Sync("second", []int{third.PID()}); err != nil {
		t.Fatal(err)
	}
	third.Finish()
	got := counted(t, s, d.Device, sample.ReadOperation, "second").Count()
	// Those without a place may also be of other programs and disks. One of these may take the free place first: another
	// package's disk that is new, or the one with the program's own file.
	elsewhere := false
	for i, old := range before {
		if h := s.latencies.known[i]; h.key != old && h.disk != d.Device {
			elsewhere = true
		}
	}
	if left := s.Latencies().Left() - refused; got+left < 295 || got > 305 || got < 300/2 && !elsewhere {
		t.Errorf("the second job has %d reads in the place of the first, and %d had none, want 300 together, and most "+
			"counted", got, left)
	}
	if got := counted(t, s, d.Device, sample.ReadOperation, "first").Count(); got != 0 {
		t.Errorf("the first job has %d reads after it has ended, want none", got)
	}
}

// TestNoRights: without rights there is one line for each part that says what is missing.
func TestNoRights(t *testing.T) {
	refused := Supported(t.TempDir())
	for _, what := range []string{Threads, Disks} {
		err := refused.Of(what)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), what+" needs") {
			t.Errorf("without BTF: %v, want one line with what %s needs", err, what)
		}
	}
}

// TestDisksAgain: what was refused is opened again by readings of latencies alone.
func TestDisksAgain(t *testing.T) {
	needsPart(t, Disks, "needs BPF for latency: ")
	attempts := 0
	s := NewFrom(func(want Wanted) (Tracing, error) {
		if attempts++; attempts == 1 {
			return &partial{newTracer("", Wanted{}, defaults), Refusals{{Disks, errors.New("is refused")}}}, nil
		}
		return newTracer("", want, defaults), nil
	}, Wanted{Disks: true}, "")
	defer func() { _ = s.Close() }()
	if s.Lacks().Of(Disks) == nil || s.Latencies().Left() != 0 {
		t.Fatalf("got that %v is lacking, want the disks", s.Lacks())
	}
	s.Retry()
	for end := time.Now().Add(20 * time.Second); s.Lacks() != nil; time.Sleep(10 * time.Millisecond) {
		if err := s.Latencies().Read(&sample.Sample{Edge: true}); err != nil || time.Now().After(end) {
			t.Fatalf("got %v, lacking %v; want nothing lacking", err, s.Lacks())
		}
	}
	if s.cells == nil {
		t.Error("got no histograms, want some")
	}
}

// TestOncePerSecond: between two edges there is a reading a second.
func TestOncePerSecond(t *testing.T) {
	s := countDisks(t)
	l := s.Latencies()
	l.known = []histogram{{key: key{1, 0, 0}, disk: "sda", newest: &sample.LatencyHistogram{Zero: 1}}}
	n := 0
	for range 12 {
		var reading sample.Sample
		if err := s.Latencies().Read(&reading); err != nil {
			t.Fatal(err)
		}
		if l.read == reading.At.Mono {
			n++
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n != 2 {
		t.Errorf("%d readings in 1.2 s, want 2", n)
	}
}

func BenchmarkReadLatencies(b *testing.B) {
	s := countDisks(b)
	file, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		b.Fatal(err)
	}
	if err := file.Sync(); err != nil { // so that there is something to read
		b.Fatal(err)
	}
	b.ReportAllocs()
	var reading sample.Sample
	for b.Loop() {
		reading.Reset()
		reading.Edge = true
		if err := s.Latencies().Read(&reading); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(s.latencies.known)), "cells")
}

func TestBoundsOfTheKernel(t *testing.T) {
	all := kernelBounds()
	for i, b := range all {
		switch {
		case i >= buckets && b != math.MaxInt64:
			t.Errorf("bound %d can be exceeded: %d", i, b)
		case i > 0 && i < buckets && b <= all[i-1]:
			t.Errorf("bound %d is %d, not above %d", i, b, all[i-1])
		}
	}
}

// BenchmarkDisks measures the programs that time disks with the kernel's own statistics, and fio's operations per
// second with and without them, in pairs, on a loop device over a file in memory.
func BenchmarkDisks(b *testing.B) {
	needs(b)
	needsPart(b, DiskJobs, "needs BPF for latency: ")
	fio, err := exec.LookPath("fio")
	if err != nil {
		b.Skip("needs fio: ", err)
	}
	path := filepath.Join("/dev/shm", "stallspan-latency-cost")
	if err := os.WriteFile(path, make([]byte, 64<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.Remove(path) })
	loop, err := exec.Command("losetup", "--find", "--show", path).Output()
	if err != nil {
		b.Skip("needs losetup: ", err)
	}
	device := strings.TrimSpace(string(loop))
	b.Cleanup(func() { _ = exec.Command("losetup", "--detach", device).Run() })
	work := func() (perSecond float64) {
		out, err := exec.Command(fio, "--name=r", "--filename="+device, "--direct=1", "--rw=randread", "--bs=4k",
			"--ioengine=libaio", "--iodepth=16", "--runtime=3", "--time_based", "--output-format=json").Output()
		if err != nil {
			b.Fatal(err)
		}
		var got struct {
			Jobs []struct {
				Read struct {
					IOPS float64 `json:"iops"`
				} `json:"read"`
			} `json:"jobs"`
		}
		if err := json.Unmarshal(out, &got); err != nil || len(got.Jobs) != 1 {
			b.Fatalf("fio printed %s (%v), want its result", out, err)
		}
		return got.Jobs[0].Read.IOPS
	}
	open := func() *Source { return NewFrom(Local(""), Wanted{Threads: true, Disks: true}, "") }
	for b.Loop() {
		var ratios []float64
		for range 5 {
			without := work()
			s := open()
			ratios = append(ratios, work()/without)
			_ = s.Close()
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[2], "IOPS-ratio")
		stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
		if err != nil {
			b.Fatal(err)
		}
		s := open()
		before := diskstatsOf(b, filepath.Base(device))
		b.ReportMetric(work(), "IOPS")
		done := diskstatsOf(b, filepath.Base(device)) - before
		for name, p := range s.tracing.(*Tracer).programs.Programs {
			of, err := p.Stats()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(of.Runtime.Nanoseconds())/float64(max(1, of.RunCount)), name+"-ns")
			b.ReportMetric(float64(of.RecursionMisses), name+"-misses")
		}
		h := counted(b, s, filepath.Base(device), sample.ReadOperation, "")
		b.ReportMetric(float64(h.Count())/float64(done), "counted-ratio")
		_, _ = s.Close(), stats.Close()
	}
}

func diskstatsOf(t testing.TB, device string) uint64 { return stats(t, device).ReadIOs }

// spent is the CPU time of this process.
func spent() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // cannot fail for this process
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
