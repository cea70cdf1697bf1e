package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// A node as it is usual for training: 8 GPUs, 10 disks, 192 logical CPUs.
const (
	gpusOfNode  = 8
	disksOfNode = 10
	coresOfNode = 192
)

// What jobs do, per node. 5,000 jobs an hour on 1,000 nodes are 5. With the sizes below they take 2.2 GPUs each on the
// average. A job of 8 waits for all GPUs, and those behind it for it: 20 minutes still let 5 an hour through.
const (
	jobsPerHour = 5
	jobLength   = 20 * time.Minute // mean
	kept        = 10 * time.Minute // as emit.Metrics shows a job that has ended
	slowShare   = 0.1              // of windows
)

// node is one machine with its agent.
type node struct {
	tape     *tape
	random   *rand.Rand
	factor   float64 // of the recording's growth
	resource []attribute.KeyValue
	metrics  *emit.Metrics
	writer   otlp.Writer
	gpus     [gpusOfNode]string // IDs
	free     []int
	began    time.Time
	jobs     []*job // that run or are still shown
	waiting  []*job
	made     int
	ended    []*job // since the last request of spans
}

type job struct {
	name   sample.JobName
	size   int
	length time.Duration
	gpus   []int
	from   time.Time
	to     time.Time // zero while it runs
	until  time.Time // of the newest points that were made
	shares [4]float64
}

func newNode(t *tape, number int, began time.Time) *node {
	r := rand.New(rand.NewPCG(1, uint64(number)))
	n := &node{tape: t, random: r, factor: 0.5 + r.Float64(), began: began,
		metrics: emit.NewMetrics("0.1.0", config.Metrics(nil).Disabled()...)}
	host := fmt.Sprintf("gpu-%04d.cluster.example", number)
	n.resource = []attribute.KeyValue{
		semconv.ServiceNameKey.String("stallspan"), semconv.ServiceInstanceIDKey.String(n.id().String()),
		semconv.HostIDKey.String(fmt.Sprintf("%032x", r.Uint64())), semconv.HostNameKey.String(host),
		attribute.String("k8s.node.name", host), attribute.String("k8s.cluster.name", "east"),
	}
	for i := range n.gpus {
		n.gpus[i] = "GPU-" + n.id().String()
		n.free = append(n.free, i)
	}
	return n
}

func (n *node) id() (u uuid.UUID) {
	for i := range u {
		u[i] = byte(n.random.Uint32())
	}
	return u
}

// live lets jobs come, begin and end in an interval that ends at now.
func (n *node) live(now time.Time, interval time.Duration) {
	for expected := jobsPerHour * interval.Hours(); expected > 0; expected-- {
		if n.random.Float64() < expected {
			n.waiting = append(n.waiting, n.newJob())
		}
	}
	shown := n.jobs[:0]
	for _, j := range n.jobs {
		if j.to.IsZero() && now.Sub(j.from) >= j.length {
			j.to = now
			n.free = append(n.free, j.gpus...)
			n.ended = append(n.ended, j)
		}
		if j.to.IsZero() || now.Sub(j.to) <= kept {
			shown = append(shown, j)
		}
	}
	n.jobs = shown
	for len(n.waiting) > 0 && n.waiting[0].size <= len(n.free) {
		j := n.waiting[0]
		n.waiting = n.waiting[1:]
		j.gpus, n.free = append([]int(nil), n.free[:j.size]...), append([]int(nil), n.free[j.size:]...)
		j.from = now
		n.jobs = append(n.jobs, j)
	}
}

// newJob returns a job of a pod, with the names that package identity finds for one.
func (n *node) newJob() *job {
	n.made++
	size := []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 8}[n.random.IntN(10)]
	team, model := n.random.IntN(40), n.random.IntN(200)
	pod := fmt.Sprintf("train-%d-%08x-%05x", model, n.random.Uint32(), n.random.Uint32()&0xfffff)
	text := func(key attribute.Key, value string) sample.Attribute {
		return sample.Attribute{Key: string(key), Value: value}
	}
	j := &job{size: size, length: time.Duration(n.random.ExpFloat64() * float64(jobLength))}
	pid := 10000 + n.made*7
	j.name = sample.JobName{ID: fmt.Sprintf("pid-%d", pid), PID: pid, Name: "train.py", User: fmt.Sprintf("user%d", team),
		Attributes: []sample.Attribute{
			text("container.id", fmt.Sprintf("%016x%016x%016x%016x", n.random.Uint64(), n.random.Uint64(), n.random.Uint64(),
				n.random.Uint64())),
			text("k8s.container.name", "trainer"), text("k8s.namespace.name", fmt.Sprintf("team-%d", team)),
			text("k8s.pod.name", pod), text("k8s.pod.uid", n.id().String()),
			text("process.executable.name", "python3.12"), text("process.owner", fmt.Sprintf("user%d", team)),
		}}
	// The recorded job's division, moved by up to 0.2 from its storage to its busy time, or back.
	row := n.tape.last.GPUTimes[0]
	whole := row.Sum().Seconds()
	moved := 0.4*n.random.Float64() - 0.2
	j.shares = [4]float64{row.Busy.Seconds()/whole + moved, max(0, row.Storage.Seconds()/whole-moved),
		row.CPU.Seconds() / whole, row.Other.Seconds() / whole}
	return j
}

// grown returns a counter after the time since the node began, at the rate at which the recording's grew.
func grown[N int64 | uint64 | time.Duration](n *node, first, last N, since time.Duration) N {
	rate := (float64(last) - float64(first)) / n.tape.took.Seconds() * n.factor
	return last + N(max(0, rate*since.Seconds()))
}

// snapshot is what the agent would have read at a moment.
func (n *node) snapshot(at time.Time) sample.Snapshot {
	first, last, since := &n.tape.first, &n.tape.last, at.Sub(n.began)
	gauges := &n.tape.between[n.random.IntN(len(n.tape.between))]
	stamp := sample.Stamp{Mono: since, Wall: at}
	s := sample.Snapshot{Boot: n.began.Add(-24 * time.Hour)}
	n.disks(&s, first, last, gauges, since)
	for i := range last.Pressures.Pressures {
		p := last.Pressures.Pressures[i]
		p.Some = grown(n, first.Pressures.Pressures[i].Some, p.Some, since)
		p.Full = grown(n, first.Pressures.Pressures[i].Full, p.Full, since)
		s.Pressures.Pressures = append(s.Pressures.Pressures, p)
	}
	for i := range coresOfNode {
		of := i % len(last.Cores.Cores)
		a, c := &first.Cores.Cores[of], last.Cores.Cores[of]
		c.Name = fmt.Sprintf("cpu%d", i)
		for _, t := range []struct{ first, last *time.Duration }{
			{&a.User, &c.User}, {&a.Nice, &c.Nice}, {&a.System, &c.System}, {&a.Idle, &c.Idle},
			{&a.IOWait, &c.IOWait}, {&a.SoftIRQ, &c.SoftIRQ}, {&a.Steal, &c.Steal},
		} {
			*t.last = grown(n, *t.first, *t.last+time.Duration(i)*10*time.Millisecond, since).Truncate(10 * time.Millisecond)
		}
		s.Cores.Cores = append(s.Cores.Cores, c)
	}
	s.GPUs.DriverUse = gauges.GPUs.DriverUse
	for i, id := range n.gpus {
		g := last.GPUs.GPUs[0]
		now := gauges.GPUs.GPUs[0]
		g.ID, g.Index, g.Power, g.Temperature = id, i, now.Power*n.factor, now.Temperature+float64(n.random.IntN(8))
		g.Busy = grown(n, first.GPUs.GPUs[0].Busy, g.Busy, since)
		g.Energy += g.Power * since.Seconds()
		s.GPUs.GPUs = append(s.GPUs.GPUs, g)
		d := gauges.GPUs.GPUDetails[0]
		d.GPU, d.At = id, since
		for q, v := range d.Values.All() {
			switch q {
			case sample.GPUPCIeReceived, sample.GPUPCIeSent, sample.GPUNVLinkReceived, sample.GPUNVLinkSent,
				sample.GPUThrottledPower, sample.GPUThrottledThermal:
				d.Values.Set(q, v*(1+since.Seconds())*n.factor)
			case sample.GPUTensorActive, sample.GPUSMActive, sample.GPUSMOccupancy, sample.GPUDRAMActive:
				d.Values.Set(q, v*n.random.Float64())
			}
		}
		s.GPUs.GPUDetails = append(s.GPUs.GPUDetails, d)
	}
	n.times(&s, stamp)
	for _, part := range []*sample.Sample{&s.Disks, &s.Pressures, &s.Cores, &s.GPUs} {
		part.At = stamp
	}
	return s
}

func (n *node) disks(s, first, last, gauges *sample.Snapshot, since time.Duration) {
	for i := range last.Disks.Disks {
		if last.Disks.Disks[i].Name != "vda" {
			continue // the others are loop devices of the machine that recorded
		}
		a := &first.Disks.Disks[i]
		for disk := range disksOfNode {
			d := last.Disks.Disks[i]
			d.Name, d.InFlight = fmt.Sprintf("nvme%dn1", disk), gauges.Disks.Disks[i].InFlight
			for _, c := range []struct{ first, last *uint64 }{{&a.ReadIOs, &d.ReadIOs}, {&a.ReadMerges, &d.ReadMerges},
				{&a.ReadBytes, &d.ReadBytes}, {&a.WriteIOs, &d.WriteIOs}, {&a.WriteMerges, &d.WriteMerges},
				{&a.WriteBytes, &d.WriteBytes}, {&a.FlushIOs, &d.FlushIOs}} {
				*c.last = grown(n, *c.first, *c.last, since)
			}
			for _, c := range []struct{ first, last *time.Duration }{
				{&a.ReadTicks, &d.ReadTicks}, {&a.WriteTicks, &d.WriteTicks}, {&a.IOTicks, &d.IOTicks},
				{&a.TimeInQueue, &d.TimeInQueue}, {&a.FlushTicks, &d.FlushTicks},
			} {
				*c.last = grown(n, *c.first, *c.last, since)
			}
			s.Disks.Disks = append(s.Disks.Disks, d)
		}
	}
}

// times adds the time of GPUs by job, and the jobs' memory on them.
func (n *node) times(s *sample.Snapshot, stamp sample.Stamp) {
	s.GPUs.GPUProcessesRead = true
	var held [gpusOfNode]time.Duration
	for _, j := range n.jobs {
		until := stamp
		if !j.to.IsZero() {
			until = sample.Stamp{Mono: j.to.Sub(n.began), Wall: j.to}
		}
		whole := until.Wall.Sub(j.from)
		part := func(i int) time.Duration { return time.Duration(j.shares[i] * float64(whole)) }
		for _, g := range j.gpus {
			held[g] += whole
			s.GPUTimes = append(s.GPUTimes, sample.GPUTime{GPU: n.gpus[g], Job: j.name.ID,
				Began: sample.Stamp{Mono: j.from.Sub(n.began), Wall: j.from.Add(-time.Millisecond)}, Until: until,
				Held: j.to.IsZero(), Busy: part(0), Storage: part(1), CPU: part(2), Other: part(3), Allocated: whole})
			if j.to.IsZero() {
				s.GPUs.GPUProcesses = append(s.GPUs.GPUProcesses,
					sample.GPUProcess{GPU: n.gpus[g], PID: j.name.PID + g, Memory: 40 << 30, Has: true})
			}
		}
		s.JobNames = append(s.JobNames, j.name)
	}
	for g, id := range n.gpus {
		s.GPUTimes = append(s.GPUTimes, sample.GPUTime{GPU: id, Began: sample.Stamp{Wall: n.began}, Until: stamp,
			Idle: max(0, stamp.Mono-held[g])})
	}
}

// request is one request of an agent, and how many of its points were in no request before: those of a job that has
// ended stay the same.
type request struct {
	metrics pmetric.Metrics
	points  int
	series  int // that no request had before, if it is of a job
}

// collect returns the agent's requests of one interval: one for the machine and one for each job.
func (n *node) collect(at time.Time) (all []request) {
	own := request{metrics: pmetric.NewMetrics()}
	r := own.metrics.ResourceMetrics().AppendEmpty()
	otlp.Attributes(n.resource, r.Resource().Attributes())
	n.writer.Metrics(n.metrics.Collect(n.snapshot(at)), r)
	own.points = own.metrics.DataPointCount()
	all = append(all, own)
	for i, shown := range n.metrics.Jobs() {
		q := request{metrics: pmetric.NewMetrics()}
		r := q.metrics.ResourceMetrics().AppendEmpty()
		otlp.Attributes(shown.Resource(n.resource), r.Resource().Attributes())
		n.writer.Metrics(shown.Metrics, r)
		until := at
		if j := n.jobs[i]; !j.to.IsZero() {
			until = j.to
		}
		if n.jobs[i].until.IsZero() {
			q.series = q.metrics.DataPointCount() + n.jobs[i].size // with that of each process's memory
		}
		if j := n.jobs[i]; until.After(j.until) {
			j.until, q.points = until, q.metrics.DataPointCount()
		}
		all = append(all, q)
	}
	return all
}

// spans returns the windows of jobs that ended: four each, which a recorded machine had. slow are their span IDs.
func (n *node) spans(at time.Time) (all ptrace.Traces, slow []trace.SpanID) {
	all = ptrace.NewTraces()
	if len(n.ended) == 0 {
		return all, nil
	}
	r := all.ResourceSpans().AppendEmpty()
	otlp.Attributes(n.resource, r.Resource().Attributes())
	scope := r.ScopeSpans().AppendEmpty()
	otlp.Scope(emit.Scope("0.1.0"), scope.Scope())
	for range 4 * len(n.ended) {
		from, isSlow := n.tape.usual, n.random.Float64() < slowShare
		if isSlow {
			from = n.tape.slow
		}
		id := n.id()
		own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(n.id()), SpanID: trace.SpanID(id[:8]),
			TraceFlags: trace.FlagsSampled})
		if isSlow {
			slow = append(slow, own.SpanID())
		}
		otlp.Span(moved(from[n.random.IntN(len(from))], at), own, trace.SpanContext{}, scope.Spans())
	}
	n.ended = n.ended[:0]
	return all, slow
}

// moved returns a span that ends at a moment.
func moved(s emit.Span, at time.Time) emit.Span {
	by := at.Sub(s.End)
	s.Start, s.End = s.Start.Add(by), s.End.Add(by)
	children := make([]emit.Span, len(s.Children))
	for i, c := range s.Children {
		c.Start, c.End = c.Start.Add(by), c.End.Add(by)
		children[i] = c
	}
	s.Children, s.Events = children, nil
	return s
}
