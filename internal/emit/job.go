package emit

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// emitEnded is how long the counters of a job that has ended are emitted: long enough for any interval of collection.
const emitEnded = 10 * time.Minute

// JobMetrics are the metrics of one job, which is a resource of its own.
type JobMetrics struct {
	Job

	Metrics metricdata.ScopeMetrics
}

// Job is who a job is. It is a resource of its own, of metrics and of spans.
type Job struct {
	ID         string
	Attributes []attribute.KeyValue // of the resource, besides those of the machine
}

// Resource returns the resource of the job: that of the machine, without what describes this program's own process,
// container and pod, and the attributes of the job. Its service.instance.id is the job's own: Prometheus distinguishes
// resources by it alone.
func (j *Job) Resource(machine []attribute.KeyValue) []attribute.KeyValue {
	own := list(slices.Clip(j.Attributes))
	for _, a := range machine {
		if a.Key == semconv.ServiceInstanceIDKey {
			of := uuid.NewSHA1(uuid.NameSpaceOID, []byte(a.Value.AsString()+"\x00"+j.ID))
			own.add(semconv.ServiceInstanceIDKey.String(of.String()))
			continue
		}
		if !begins(a.Key, ofProcess) && !slices.ContainsFunc(own, func(x attribute.KeyValue) bool { return x.Key == a.Key }) {
			own = append(own, a)
		}
	}
	return own
}

// Prefixes of attributes.
var (
	ofProcess = []string{"process.", "container.", "k8s.pod.", "k8s.container.", "k8s.namespace.", "k8s.daemonset."}
	ofMachine = []string{"host.", "service.", "telemetry.", "os.", "k8s.node.", "k8s.cluster."} // no job may set them
)

func begins(key attribute.Key, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(key), p) })
}

// Jobs returns the metrics of jobs as of the last Collect, in a fixed order.
func (m *Metrics) Jobs() []JobMetrics { return m.jobs }

// times emits the time of GPUs that no job held, and makes the metrics of jobs.
func (m *Metrics) times(b *builder, now *sample.Snapshot) {
	m.jobs = nil // the caller may keep the last ones
	if m.Nameless {
		for i := range now.GPUTotals {
			m.gpuTime(b, &now.GPUTotals[i], true, nil)
		}
		b.start = now.Boot
		return
	}
	at, slow := present(now), m.newSlow(newest(now))
	builders := map[string]*builder{}
	var order []string
	for i := range now.GPUTimes {
		row := &now.GPUTimes[i]
		if row.Job == "" {
			m.gpuTime(b, row, false, nil)
			continue
		}
		if !row.Held && at-row.Until.Mono > emitEnded {
			continue
		}
		own := builders[row.Job]
		if own == nil {
			own = &builder{sizes: map[*semconv.Metric]int{}}
			builders[row.Job] = own
			order = append(order, row.Job)
		}
		m.gpuTime(own, row, false, exemplars(row, slow, now))
	}
	m.latencies(builders, now)
	for _, job := range order {
		jobNetwork(builders[job], job, now)
		name := find(now.JobNames, func(n *sample.JobName) bool { return n.ID == job })
		m.jobs = append(m.jobs, JobMetrics{
			Job:     Job{job, jobAttributes(job, name)},
			Metrics: metricdata.ScopeMetrics{Scope: m.scope, Metrics: m.enabled(builders[job].metrics())},
		})
	}
	b.start = now.Boot
}

// jobNetwork emits what a job exchanged with all peers. Their addresses are in no metric: there may be any number.
func jobNetwork(b *builder, job string, now *sample.Snapshot) {
	var received, sent uint64
	known := false
	for i := range now.Peers.Peers {
		if p := &now.Peers.Peers[i]; p.Job == job {
			received, sent, known = received+p.Received+p.PastReceived, sent+p.Sent+p.PastSent, true
		}
	}
	if known {
		b.time = now.Peers.At.Wall
		b.int(&semconv.ProcessNetworkIO, received, networkReceived)
		b.int(&semconv.ProcessNetworkIO, sent, networkSent)
	}
}

// gpuTime emits one row. A total has all causes. slow are the exemplars of the time that was lost to storage.
func (m *Metrics) gpuTime(b *builder, row *sample.GPUTime, total bool, slow []metricdata.Exemplar[float64]) {
	b.start, b.time = row.Began.Wall, row.Until.Wall
	if row.GPU == "" {
		b.floatFrom(&semconv.JobStallTime, row.Storage.Seconds(), stallStorage, slow)
		b.float(&semconv.JobStallTime, row.Other.Seconds(), stallOther)
		return
	}
	sets := m.sets.times.get(row.GPU, newTimeSets)
	if row.Job == "" {
		b.float(&semconv.GPUTime, row.Idle.Seconds(), sets.idle)
	}
	if row.Job != "" || total || row.Storage+row.CPU > 0 {
		b.floatFrom(&semconv.GPUTime, row.Storage.Seconds(), sets.storage, slow)
		b.float(&semconv.GPUTime, row.CPU.Seconds(), sets.cpu)
	}
	b.float(&semconv.GPUTime, row.Busy.Seconds(), sets.busy)
	b.float(&semconv.GPUTime, row.Other.Seconds(), sets.other)
	b.float(&semconv.GPUAllocatedTime, row.Allocated.Seconds(), sets.plain)
}

var (
	stallStorage    = attribute.NewSet(semconv.JobStallCauseStorage)
	networkReceived = attribute.NewSet(semconv.NetworkIODirectionReceive)
	networkSent     = attribute.NewSet(semconv.NetworkIODirectionTransmit)

	stallOther = attribute.NewSet(semconv.JobStallCauseOther)
)

type timeSets struct{ plain, busy, storage, cpu, other, idle attribute.Set }

func newTimeSets(gpu string) timeSets {
	id := list{semconv.HwIDKey.String(UTF8(gpu))}
	return timeSets{
		plain: id.with(), busy: id.with(semconv.GPUTimeCauseBusy), storage: id.with(semconv.GPUTimeCauseStorage),
		cpu: id.with(semconv.GPUTimeCauseCPU), other: id.with(semconv.GPUTimeCauseOther),
		idle: id.with(semconv.GPUTimeCauseIdle),
	}
}

// jobAttributes returns the attributes of a job's resource. name may be nil.
func jobAttributes(job string, name *sample.JobName) []attribute.KeyValue {
	if name == nil {
		return list{semconv.JobNameKey.String(UTF8(job))}
	}
	var l list
	l.text(semconv.JobNameKey, name.Name)
	if name.PID > 0 {
		l = append(l, semconv.ProcessPIDKey.Int(name.PID))
	}
	for _, a := range name.Attributes {
		if key := attribute.Key(UTF8(a.Key)); !begins(key, ofMachine) {
			l.text(key, a.Value)
		}
	}
	return l
}

// serviceName is the default of service.name.
const serviceName = "stallspan"

// Resource returns the resource attributes of this program and its machine, for all signals of an output. Each call
// makes a new service instance. root is the folder that is the host's "/".
func Resource(root string) []attribute.KeyValue {
	l := list{
		semconv.ServiceNameKey.String(serviceName),
		semconv.ServiceInstanceIDKey.String(uuid.NewString()),
	}
	l.text(semconv.HostIDKey, locate.HostID(root))
	l.text(semconv.HostNameKey, locate.HostName(root))
	return l
}

// OwnProcess returns the resource attribute of this process, which only spans have.
func OwnProcess() attribute.KeyValue { return semconv.ProcessPIDKey.Int(os.Getpid()) }
