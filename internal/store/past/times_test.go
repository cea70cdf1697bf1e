package past

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
)

// counters are the GPU times of one agent, from its start on.
type counters struct {
	rows  []sample.GPUTime
	names []sample.JobName
}

func (c *counters) now() ([]sample.GPUTime, []sample.JobName) {
	return append([]sample.GPUTime(nil), c.rows...), append([]sample.JobName(nil), c.names...)
}

// row returns the row of a job on a GPU, which begins at a time if it is new.
func (c *counters) row(job, gpu string, at time.Duration) *sample.GPUTime {
	for i := range c.rows {
		if c.rows[i].Job == job && c.rows[i].GPU == gpu {
			return &c.rows[i]
		}
	}
	if job != "" {
		c.names = append(c.names, sample.JobName{ID: job, Name: "name of " + job, User: "ann", Client: "uid 7"})
	}
	c.rows = append(c.rows, sample.GPUTime{Job: job, GPU: gpu, Held: job != "", Began: stamp(at), Until: stamp(at)})
	return &c.rows[len(c.rows)-1]
}

// grow adds the time up to a moment, divided in any way.
func (c *counters) grow(random *rand.Rand, job, gpu string, to time.Duration) {
	r := c.row(job, gpu, to)
	left := to - r.Until.Mono
	if job == "" {
		r.Idle += left
	} else {
		r.Allocated += left
		for _, part := range []*time.Duration{&r.Busy, &r.Storage, &r.CPU} {
			d := time.Duration(random.Int64N(int64(left) + 1))
			*part += d
			left -= d
		}
		r.Other += left
		r.Unused += left / 3
		r.Gain += left / 7
	}
	r.Until = stamp(to)
}

// sumOf adds the parts of two rows.
func sumOf(a, b sample.GPUTime) sample.GPUTime {
	a.Busy, a.Storage, a.CPU, a.Other = a.Busy+b.Busy, a.Storage+b.Storage, a.CPU+b.CPU, a.Other+b.Other
	a.Idle, a.Allocated, a.Gain, a.Unused = a.Idle+b.Idle, a.Allocated+b.Allocated, a.Gain+b.Gain, a.Unused+b.Unused
	return a
}

// partsOf are the parts of a row alone, to compare.
func partsOf(r sample.GPUTime) sample.GPUTime { return sumOf(sample.GPUTime{}, r) }

// agentAt is an agent that begins at a time. It counts what c does.
func agentAt(t testing.TB, folder string, c *counters, boot string, at time.Duration) *Recorder {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, problems := begun(t, h, folder)
	t.Cleanup(func() {
		if len(*problems) > 0 {
			t.Errorf("got the problems %q, want none", *problems)
		}
	})
	r.times.Times = Times{Now: c.now, Boot: boot}
	r.begin(stamp(at))
	r.open(stamp(at))
	return r
}

// killed returns a folder as the next agent finds it when this one is killed now.
func killed(t testing.TB, r *Recorder, folder string) string {
	t.Helper()
	t.Cleanup(func() { _ = r.writer.Close(stamp(0)) })
	next := filepath.Join(t.TempDir(), "history")
	if err := os.CopyFS(next, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return next
}

// found returns what a recorder lists, by job and GPU, and the names by job.
func found(
	t testing.TB, r *Recorder, since, until time.Duration,
) (map[string]sample.GPUTime, map[string]sample.JobName) {
	t.Helper()
	var from, to time.Time
	if since > 0 {
		from = zero.Add(since)
	}
	if until > 0 {
		to = zero.Add(until)
	}
	rows, names, err := r.JobTimes(from, to)
	if err != nil {
		t.Fatal(err)
	}
	all, named := map[string]sample.GPUTime{}, map[string]sample.JobName{}
	for _, row := range rows {
		if _, twice := all[row.Job+" "+row.GPU]; twice {
			t.Errorf("got two rows of %q on %s, want one", row.Job, row.GPU)
		}
		all[row.Job+" "+row.GPU] = row
	}
	for _, n := range names {
		named[n.ID] = n
	}
	return all, named
}

// Over agents that stop and jobs that come, go and go on, what is listed is the sum of what the agents counted. After a
// kill, five minutes are missing at most.
func TestTimesAddUp(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		folder := filepath.Join(t.TempDir(), "history")
		want, lost := map[string]sample.GPUTime{}, map[string]time.Duration{}
		at := time.Duration(0)
		jobs := []string{"", "always", "sometimes"}
		for session := range 4 {
			c := &counters{}
			r := agentAt(t, folder, c, "boot", at)
			for _, job := range jobs {
				c.row(job, "GPU-1", at)
			}
			kill := random.IntN(3) == 0
			for range 20 + random.IntN(200) {
				at += period
				for i, job := range append(jobs, fmt.Sprintf("short %d.%d", session, at/(10*time.Minute))) {
					if i < 2 || random.IntN(2) == 0 {
						c.grow(random, job, "GPU-1", at)
					}
				}
				for i := range c.rows {
					c.rows[i].Held = c.rows[i].Job == "" || at-c.rows[i].Until.Mono < time.Minute
				}
				r.round(stamp(at))
			}
			live, names := found(t, r, 0, 0)
			for _, row := range c.rows {
				key := row.Job + " " + row.GPU
				want[key] = sumOf(want[key], row)
				if got := live[key]; got.Sum()+lost[key] < want[key].Sum() || got.Sum() > want[key].Sum() {
					t.Errorf("seed %d, while agent %d runs: %s: got %v, want %v", seed, session, key, got.Sum(),
						want[key].Sum())
				}
				if live[key].Held != row.Held && row.Job != "" {
					t.Errorf("seed %d: %s: got held %v, want %v", seed, key, live[key].Held, row.Held)
				}
				if row.Job != "" && names[row.Job].Client != "uid 7" {
					t.Errorf("seed %d: got the name %+v of %s", seed, names[row.Job], row.Job)
				}
			}
			if kill {
				folder = killed(t, r, folder)
				for i := range c.rows {
					lost[c.rows[i].Job+" "+c.rows[i].GPU] += timesEvery + period
				}
			} else {
				r.close(stamp(at))
			}
			at += time.Duration(random.Int64N(int64(time.Hour)))
		}
		c := &counters{}
		r := agentAt(t, folder, c, "boot", at)
		got, names := found(t, r, 0, 0)
		for key, all := range want {
			if sum := got[key].Sum(); sum > all.Sum() || sum+lost[key] < all.Sum() {
				t.Errorf("seed %d: %s: got %v, want %v without at most %v", seed, key, sum, all.Sum(), lost[key])
			}
			if lost[key] == 0 && partsOf(got[key]) != partsOf(all) {
				t.Errorf("seed %d: %s: got %+v, want %+v", seed, key, got[key], all)
			}
			job, complete := strings.TrimSuffix(key, " GPU-1"), lost[key] == 0 && all.Sum() > 0
			if complete && job != "" && names[job].Name != "name of "+job {
				t.Errorf("seed %d: got the name %+v of %s", seed, names[job], job)
			}
		}
		r.close(stamp(at))
	}
}

// A time within what was written gets its part of it, and two parts make the whole.
func TestTimesBetween(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history")
	c := &counters{}
	r := agentAt(t, folder, c, "boot", time.Hour)
	random := rand.New(rand.NewPCG(1, 1))
	c.row("a", "GPU-1", time.Hour)
	for at := time.Hour + period; at <= 2*time.Hour; at += period {
		c.grow(random, "a", "GPU-1", at)
		r.round(stamp(at))
	}
	const key, middle = "a GPU-1", time.Hour + 32*time.Minute
	all, _ := found(t, r, 0, 0)
	first, _ := found(t, r, time.Hour, middle)
	second, _ := found(t, r, middle, 3*time.Hour)
	if all[key].Sum() != time.Hour {
		t.Errorf("got %v, want an hour", all[key].Sum())
	}
	if off := first[key].Sum() - 32*time.Minute; off > time.Microsecond || off < -time.Microsecond {
		t.Errorf("got %v before %v, want 32 min", first[key].Sum(), middle)
	}
	if off := all[key].Busy - first[key].Busy - second[key].Busy; off > time.Microsecond || off < -time.Microsecond {
		t.Errorf("got busy %v and %v, want a sum of %v", first[key].Busy, second[key].Busy, all[key].Busy)
	}
	if none, _ := found(t, r, 2*time.Hour+time.Minute, 3*time.Hour); len(none) != 0 {
		t.Errorf("got %v in a time without jobs, want none", none)
	}
	if !first[key].Began.Wall.Equal(zero.Add(time.Hour)) || !first[key].Until.Wall.Equal(zero.Add(middle)) {
		t.Errorf("got it from %v to %v, want from its start to the end of the time", first[key].Began.Wall,
			first[key].Until.Wall)
	}
	r.close(stamp(2 * time.Hour))
}

// A process of another boot is another job, even with the same number and start. A job that has ended is written with
// the next block of the file, and one that just began is listed.
func TestTimesOfAnotherBoot(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history")
	random := rand.New(rand.NewPCG(1, 1))
	c := &counters{}
	r := agentAt(t, folder, c, "first-boot", 0)
	c.row("process 7 of 9", "GPU-1", 0)
	c.grow(random, "process 7 of 9", "GPU-1", 20*time.Second)
	c.rows[0].Held = false
	r.round(stamp(30 * time.Second))
	r.round(stamp(flushEvery))
	folder = killed(t, r, folder)

	c = &counters{}
	r = agentAt(t, folder, c, "second-boot", time.Hour)
	c.row("process 7 of 9", "GPU-1", time.Hour)
	rows, names := found(t, r, 0, 0)
	old, now := rows["process 7 of 9 in boot first-bo GPU-1"], rows["process 7 of 9 GPU-1"]
	if len(rows) != 2 || old.Sum() != 20*time.Second || old.Held || !now.Held || now.Sum() != 0 {
		t.Errorf("got %+v, want a job of 20 s that has ended, and one that just began", rows)
	}
	if names[old.Job].Name != "name of process 7 of 9" || names[old.Job].Client != "uid 7" {
		t.Errorf("got the names %+v, want that of the job that has ended", names)
	}
	r.close(stamp(time.Hour))
}

// Jobs that come and go without end are bounded when they are read, and the newest are listed.
func TestManyTimes(t *testing.T) {
	s := newSums(time.Time{}, time.Time{})
	for i := range 3 * maxSums {
		p := growth{GPU: "GPU-1", Began: int64(i), From: int64(i), Until: int64(i + 1), Busy: 1}
		s.names[jobKey{"", fmt.Sprint(i)}] = sample.JobName{Name: "x"}
		s.add("", fmt.Sprint(i), &p)
	}
	rows, names := s.rowsOf("")
	if len(rows) != maxSums || len(names) != maxSums || rows[len(rows)-1].Job != fmt.Sprint(3*maxSums-1) {
		t.Errorf("got %d rows and %d names, want the newest %d", len(rows), len(names), maxSums)
	}
}

// A day of 64 jobs is small.
func TestSizeOfTimes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history")
	c := &counters{}
	r := agentAt(t, folder, c, "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", 0)
	random := rand.New(rand.NewPCG(1, 1))
	for at := timesEvery; at <= 12*time.Hour; at += timesEvery {
		for i := range 64 {
			job := fmt.Sprintf("process %d of %d", 1000+17*i, 91234567+i)
			c.grow(random, job, fmt.Sprintf("GPU-%08x-1234", i%16), at)
			if n := &c.names[i]; n.Attributes == nil {
				for _, key := range []string{"k8s.pod.name", "k8s.pod.uid", "k8s.namespace.name", "container.id", "owner"} {
					n.Attributes = append(n.Attributes, sample.Attribute{Key: key, Value: fmt.Sprintf("%x", random.Uint64())})
				}
			}
		}
		r.round(stamp(at))
	}
	r.close(stamp(12 * time.Hour))
	files, err := store.Files(folder)
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want a file", files, err)
	}
	t.Logf("12 h of 64 jobs: %d bytes, so %.2f MB a week", files[0].Size, 14*float64(files[0].Size)/1e6)
	if files[0].Size > 1_000_000 {
		t.Errorf("got %d bytes, want less than a megabyte", files[0].Size)
	}
	begin := time.Now()
	reader := agentAt(t, folder, &counters{}, "", 12*time.Hour)
	rows, _ := found(t, reader, 0, 0)
	t.Logf("read in %v", time.Since(begin))
	if len(rows) != 64 {
		t.Errorf("got %d rows, want 64", len(rows))
	}
	reader.close(stamp(12 * time.Hour))
	if info, err := os.Stat(files[0].Path); err != nil || info.Size() != files[0].Size {
		t.Errorf("got %v, %v, want a file that reading does not change", info, err)
	}
}

// One operation is five minutes of 64 jobs on GPUs, with 960 more that have ended. One of 30 rounds writes.
func BenchmarkTimes(b *testing.B) {
	c, random := &counters{}, rand.New(rand.NewPCG(1, 1))
	r := agentAt(b, filepath.Join(b.TempDir(), "history"), c, "boot", 0)
	for i := range 1024 {
		job := fmt.Sprintf("process %d of %d", 1000+i, 91234567+i)
		c.row(job, fmt.Sprintf("GPU-%d", i%16), 0).Held = i < 64
		c.grow(random, job, fmt.Sprintf("GPU-%d", i%16), timesEvery)
	}
	r.times.pass(stamp(timesEvery), true, r.writer)
	at := timesEvery
	b.ReportAllocs()
	for b.Loop() {
		for range 30 {
			at += period
			for i := range 64 {
				c.rows[i].Busy += period
				c.rows[i].Until = stamp(at)
			}
			if r.times.pass(stamp(at), false, r.writer) {
				if err := r.writer.Flush(stamp(at)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(timesEvery), "%core")
}
