//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// BenchmarkDecode is the cost of one event in Read, without the system calls of a reading.
func BenchmarkDecode(b *testing.B) {
	record := make([]byte, outSize)
	order := binary.NativeEndian
	order.PutUint64(record, uint64(time.Hour))
	order.PutUint32(record[8:], 70001)
	order.PutUint32(record[12:], 70000)
	record[16], record[17], record[18] = uint8(sample.ThreadOut), uint8(sample.StateBlocked), uint8(sample.Socket)
	order.PutUint16(record[22:], 2)
	d := decoder{}
	var events []sample.ThreadEvent
	b.ReportAllocs()
	for b.Loop() {
		events = d.decode(record, events[:0])
	}
	if len(events) != 1 || events[0].TID != 70001 {
		b.Fatalf("got %+v, want one event", events)
	}
}

// BenchmarkEmptyRead is the cost of a reading when nothing happened.
func BenchmarkEmptyRead(b *testing.B) {
	s := opened(b, defaults)
	var r sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		if err := s.Read(&r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen loads and attaches the programs, and measures the CPU time of this process for that.
func BenchmarkOpen(b *testing.B) {
	for name, want := range map[string]Wanted{"threads": {Threads: true}, "disks": {Disks: true}, "both": {true, true}} {
		b.Run(name, func(b *testing.B) {
			needs(b)
			before := spent()
			for b.Loop() {
				_ = NewFrom(Local(""), want, "").Close()
			}
			b.ReportMetric(float64((spent()-before).Microseconds())/1000/float64(b.N), "cpu-ms")
		})
	}
}

// BenchmarkRead is the cost of an event in a reading each 100 ms, while another program makes them.
func BenchmarkRead(b *testing.B) {
	o := defaults
	o.jobBudget, o.allBudget = 1<<20, 1<<20 // no sums
	s := opened(b, o)
	p := fixture.Start(b, "storm")
	if err := s.Follow("job", []int{p.PID()}); err != nil {
		b.Fatal(err)
	}
	done := p.Run()
	var r sample.Sample
	var spent time.Duration
	var events, readings int
	for {
		select {
		case <-done:
			b.ReportMetric(float64(spent.Nanoseconds())/float64(max(events, 1)), "ns/event")
			b.ReportMetric(float64(events)/float64(max(readings, 1)), "events/reading")
			return
		case <-time.After(100 * time.Millisecond):
		}
		r.Reset()
		from := time.Now()
		if err := s.Read(&r); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(from)
		events += len(r.Schedule.Events)
		readings++
	}
}

// pinned runs f on a thread of its own on CPU 0, so that two of them take turns.
func pinned(f func()) (tid int, wait func()) {
	return thread(func() {
		var first unix.CPUSet
		first.Set(0)
		must(unix.SchedSetaffinity(0, &first))
		f()
	})
}

// turns are two threads on one CPU that wake each other through pipes: two switches for each round.
type turns struct {
	forth, back [2]int
	buf         [1]byte
	echo        int // the other thread
	stop        func()
}

func newTurns() *turns {
	p := &turns{}
	must(unix.Pipe2(p.forth[:], 0))
	must(unix.Pipe2(p.back[:], 0))
	echo, wait := pinned(func() {
		var buf [1]byte
		for {
			if n, err := unix.Read(p.forth[0], buf[:]); n == 0 || err != nil {
				return
			}
			_, err := unix.Write(p.back[1], buf[:])
			must(err)
		}
	})
	p.echo = echo
	p.stop = func() {
		must(unix.Close(p.forth[1]))
		wait()
		for _, fd := range []int{p.forth[0], p.back[0], p.back[1]} {
			must(unix.Close(fd))
		}
	}
	return p
}

func (p *turns) round() {
	_, err := unix.Write(p.forth[1], p.buf[:])
	must(err)
	_, err = unix.Read(p.back[0], p.buf[:])
	must(err)
}

// reader reads each period on a thread of its own, until the returned function is called, which returns its CPU time.
func reader(b *testing.B, s *Source, period time.Duration) (stop func() time.Duration) {
	quit := make(chan struct{})
	var spent time.Duration
	_, wait := thread(func() {
		var r sample.Sample
		before := cpuTime(unix.Gettid())
		for {
			select {
			case <-quit:
				spent = cpuTime(unix.Gettid()) - before
				return
			case <-time.After(period):
			}
			r.Reset()
			if err := s.Read(&r); err != nil {
				b.Error(err)
			}
			if r.Schedule.Lost > 0 {
				b.Errorf("got %d lost events, want none", r.Schedule.Lost)
			}
		}
	})
	return func() time.Duration {
		close(quit)
		wait()
		return spent
	}
}

// cpuTime is that of threads of this process.
func cpuTime(tids ...int) time.Duration {
	var sum time.Duration
	for _, tid := range tids {
		var t unix.Timespec
		must(unix.ClockGettime(int32(^tid<<3|6), &t)) // CPUCLOCK_PERTHREAD_MASK, CPUCLOCK_SCHED
		sum += time.Duration(t.Nano())
	}
	return sum
}

// BenchmarkSwitch measures what following adds to a switch of a thread: without the source, with it but not followed,
// followed, and followed above the budget. The states alternate, forwards and backwards.
func BenchmarkSwitch(b *testing.B) {
	needs(b)
	const rounds = 20000
	unbounded := defaults
	unbounded.jobBudget, unbounded.allBudget, unbounded.ringBytes = 1<<30, 1<<30, 64<<20
	state := func(name string) float64 {
		if name != "alone" {
			o := unbounded
			if name == "summed" {
				o = defaults
				o.jobBudget = 100
			}
			s := openWith(o)
			if err := s.Refused(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if name != "attached" {
				if err := s.Follow("job", []int{os.Getpid()}); err != nil {
					b.Fatal(err)
				}
				stop := reader(b, s, 20*time.Millisecond)
				defer stop()
			}
		}
		p := newTurns()
		defer p.stop()
		var took time.Duration
		_, wait := pinned(func() {
			for range rounds / 10 {
				p.round()
			}
			start := cpuTime(unix.Gettid(), p.echo)
			for range rounds {
				p.round()
			}
			took = cpuTime(unix.Gettid(), p.echo) - start
		})
		wait()
		return float64(took.Nanoseconds()) / (2 * rounds)
	}
	names := []string{"alone", "attached", "followed", "summed"}
	costs := map[string][]float64{}
	for b.Loop() {
		for range 6 {
			for _, name := range names {
				costs[name] = append(costs[name], state(name))
			}
			slices.Reverse(names)
		}
	}
	for name, all := range costs {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-ns/switch")
	}
}

// measureRuns has the kernel measure how long programs run, until the benchmark ends.
func measureRuns(b *testing.B) {
	b.Helper()
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stats.Close() })
}

// BenchmarkPrograms measures the programs themselves, with what the kernel takes to measure them (about 25 ns).
func BenchmarkPrograms(b *testing.B) {
	needs(b)
	measureRuns(b)
	o := defaults
	o.jobBudget, o.allBudget, o.ringBytes = 1<<30, 1<<30, 16<<20
	s := opened(b, o)
	if err := s.Follow("job", []int{os.Getpid()}); err != nil {
		b.Fatal(err)
	}
	stop := reader(b, s, 20*time.Millisecond)
	defer stop()
	p := newTurns()
	defer p.stop()
	const rounds = 20000
	var times [2][]float64
	for range 10 {
		before := s.runs(b)
		_, wait := pinned(func() {
			for range rounds {
				p.round()
			}
		})
		wait()
		after := s.runs(b)
		for i := range times {
			times[i] = append(times[i], float64((after[i]-before[i]).Nanoseconds())/(2*rounds))
		}
	}
	for i, name := range []string{"on_switch", "on_waking"} {
		b.ReportMetric(slices.Min(times[i]), name+"-ns/switch")
	}
}

// runs returns how long the programs have run.
func (s *Source) runs(b *testing.B) (times [2]time.Duration) {
	programs := s.tracing.(*Tracer).programs.Programs
	for i, name := range []string{"on_switch", "on_waking"} {
		stats, err := programs[name].Stats()
		if err != nil {
			b.Fatal(err)
		}
		times[i] = stats.Runtime
	}
	return times
}

// BenchmarkWarmData measures the program that runs when a page fault finds its data in memory, of this process, which
// is followed or not. What the kernel takes to measure them is in it (about 25 ns).
func BenchmarkWarmData(b *testing.B) {
	needs(b)
	measureRuns(b)
	const size, each = 16 << 20, 64 << 10
	path := filepath.Join(b.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, followed := range []bool{false, true} {
		b.Run("followed="+strconv.FormatBool(followed), func(b *testing.B) {
			s := opened(b, defaults)
			if followed {
				if err := s.Follow("job", []int{os.Getpid()}); err != nil {
					b.Fatal(err)
				}
			}
			var sum byte
			for b.Loop() {
				mapped, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
				if err != nil {
					b.Fatal(err)
				}
				for at := 0; at < size; at += each {
					sum += mapped[at]
				}
				_ = unix.Munmap(mapped)
			}
			_ = sum
			mapped := s.tracing.(*Tracer).programs.Programs["on_mapped"]
			if mapped == nil { // the kernel is older than Linux 6.12
				return
			}
			stats, err := mapped.Stats()
			if err != nil {
				b.Fatal(err)
			}
			if stats.RunCount > 0 {
				b.ReportMetric(float64(stats.Runtime.Nanoseconds())/float64(stats.RunCount), "on_mapped-ns/run")
			}
		})
	}
}

// BenchmarkReader measures the share of a core that readings take at different rates of switches.
func BenchmarkReader(b *testing.B) {
	needs(b)
	for _, perSecond := range []int{0, 1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(perSecond), func(b *testing.B) {
			s := opened(b, defaults)
			p := newTurns()
			defer p.stop()
			const length = 2 * time.Second
			var switches int
			for b.Loop() {
				if err := s.Follow("job", []int{os.Getpid()}); err != nil {
					b.Fatal(err)
				}
				stop := reader(b, s, 100*time.Millisecond)
				_, wait := pinned(func() {
					for end := time.Now().Add(length); time.Now().Before(end); {
						for range perSecond / 200 / 2 {
							p.round()
							switches += 2
						}
						time.Sleep(5 * time.Millisecond)
					}
				})
				wait()
				b.ReportMetric(100*stop().Seconds()/length.Seconds(), "%core")
			}
			b.ReportMetric(float64(switches)/b.Elapsed().Seconds(), "switches/s")
		})
	}
}
