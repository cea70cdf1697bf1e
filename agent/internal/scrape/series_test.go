package scrape

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/sample"
)

// maxSeries is the aim for one node with the default configuration.
const maxSeries = 5000

// node is a snapshot of a large machine, with every reading that its devices can have.
func node(after time.Duration, cores, gpus, disks, jobs int) sample.Snapshot {
	boot := time.Unix(1_795_000_000, 0)
	stamp := sample.Stamp{Mono: after, Wall: boot.Add(after)}
	s := sample.Snapshot{Boot: boot}
	for _, r := range []*sample.Sample{
		&s.Disks, &s.Pressures, &s.Cores, &s.Jobs, &s.GPUs, &s.Drives, &s.Latencies, &s.Mounts, &s.Peers,
	} {
		r.At = stamp
	}
	addDisks(&s, stamp, disks)
	for _, resource := range []sample.Resource{sample.CPU, sample.Memory, sample.IO} {
		s.Pressures.Pressures = append(s.Pressures.Pressures, sample.Pressure{Resource: resource})
	}
	for i := range cores {
		s.Cores.Cores = append(s.Cores.Cores, sample.Core{Name: "cpu" + strconv.Itoa(i), User: after})
	}
	addGPUs(&s, stamp, gpus)
	addMounts(&s)
	addLatencies(&s, stamp, disks, jobs)
	for i := range jobs {
		id := "job " + strconv.Itoa(i)
		s.GPUTimes = append(s.GPUTimes, sample.GPUTime{GPU: "GPU-" + strconv.Itoa(i%gpus), Job: id, Held: true, Until: stamp})
		s.JobNames = append(s.JobNames, sample.JobName{ID: id, PID: i + 1, Name: id})
		for worker := range 8 {
			s.Jobs.Processes = append(s.Jobs.Processes, sample.Process{PID: 10*i + worker, Job: id, HasIO: true})
		}
		s.Peers.Peers = append(s.Peers.Peers, sample.Peer{Job: id, Address: "10.0.0.1:443"})
	}
	return s
}

func addDisks(s *sample.Snapshot, now sample.Stamp, disks int) {
	n := uint64(now.Mono / time.Millisecond)
	var values sample.DriveValues
	for q := range sample.DriveQuantities {
		values.Set(q, 1)
	}
	for i := range disks {
		name := "nvme" + strconv.Itoa(i) + "n1"
		s.Disks.Disks = append(s.Disks.Disks, sample.Disk{
			Name: name, Leaf: true, ReadIOs: n, WriteIOs: n, ReadBytes: n, WriteBytes: n, ReadTicks: now.Mono / 9,
			WriteTicks: now.Mono / 9, Has: sample.HasDiscards | sample.HasFlushes,
		})
		s.Ceilings = append(s.Ceilings, sample.Ceiling{Disk: name, Read: 7e9, Write: 5e9})
		s.Drives.Drives = append(s.Drives.Drives, sample.Drive{
			ID: "eui." + strconv.Itoa(i), Device: name, Protocol: "NVMe", Size: 2 << 40, Status: sample.DriveOK, At: now.Wall,
			Values: values,
		})
	}
}

// addMounts adds four mounts of NFS, which has the most counters, and GPUDirect Storage.
func addMounts(s *sample.Snapshot) {
	for i := range 4 {
		point := "/data" + strconv.Itoa(i)
		s.Mounts.MountCounters = append(s.Mounts.MountCounters, sample.MountCounters{
			ID: point, Source: "server:" + point, Point: point, Type: "nfs4", Connections: 1,
			Has: sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime | sample.HasMountTransport |
				sample.HasMountCalled | sample.HasMountWaiting,
		})
	}
	s.Mounts.GPUDirect = &sample.GPUDirect{HasTransfer: true}
}

// addLatencies adds the histograms of each disk, and of each job on two disks.
func addLatencies(s *sample.Snapshot, now sample.Stamp, disks, jobs int) {
	one := &sample.LatencyHistogram{Sum: time.Second, First: sample.LatencyBucket(time.Second), Counts: []uint64{1}}
	add := func(disk int, job string, operations ...sample.Operation) {
		for _, o := range operations {
			s.Latencies.Latencies = append(s.Latencies.Latencies, sample.Latency{
				Disk: "nvme" + strconv.Itoa(disk) + "n1", Operation: o, Job: job, Began: now, LatencyHistogram: one,
			})
		}
	}
	for i := range disks {
		add(i, "", sample.ReadOperation, sample.WriteOperation, sample.FlushOperation)
	}
	for i := range jobs {
		add(i%disks, "job "+strconv.Itoa(i), sample.ReadOperation)
		add((i+1)%disks, "job "+strconv.Itoa(i), sample.WriteOperation)
	}
}

func addGPUs(s *sample.Snapshot, now sample.Stamp, gpus int) {
	var values sample.GPUValues
	for q := range sample.GPUQuantities {
		values.Set(q, 1)
	}
	s.GPUs.DriverUse = &sample.DriverUse{}
	for i := range 24 { // as many functions and fields as the agent calls
		call := sample.DriverCall{Name: "call" + strconv.Itoa(i), Count: 1}
		s.GPUs.DriverUse.Calls = append(s.GPUs.DriverUse.Calls, call)
		s.GPUs.DriverUse.Fields = append(s.GPUs.DriverUse.Fields, call)
	}
	for i := range gpus {
		id := "GPU-" + strconv.Itoa(i)
		s.GPUs.GPUs = append(s.GPUs.GPUs, sample.GPU{
			ID: id, Busy: now.Mono / 2, MemoryTotal: 1,
			LinkWidth: 16, LinkWidthMax: 16, LinkGeneration: 5, LinkGenerationMax: 5,
			Has: sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy | sample.HasLink |
				sample.HasLinkMax,
		})
		s.GPUs.GPUDetails = append(s.GPUs.GPUDetails, sample.GPUDetail{
			GPU: id, At: now.Mono, Values: values, XIDs: []sample.XID{{Code: 31, Count: 1}, {Code: 79, Count: 1}},
		})
		row := sample.GPUTime{GPU: id, Until: now, Storage: 1, CPU: 1}
		s.GPUTimes, s.GPUTotals = append(s.GPUTimes, row), append(s.GPUTotals, row)
	}
}

// With the default configuration, a node with 16 GPUs, 64 jobs on them, 12 disks and as many as 256 cores has at most
// 5,000 series, mounts of NFS and the latencies of disks included: from the agent, from the receiver, and on /metrics
// for those who see jobs and those who do not.
func TestSeriesOfANode(t *testing.T) {
	const gpus, disks, jobs = 16, 12, 64
	for _, cores := range []int{64, 256} {
		off := config.Metrics{}.Disabled()
		m := emit.NewMetrics("", off...)
		m.Own = func() emit.Own { return emit.Own{Since: time.Unix(1, 0)} }
		m.Collect(node(time.Hour, cores, gpus, disks, jobs))
		scopes := []metricdata.ScopeMetrics{m.Collect(node(time.Hour+10*time.Second, cores, gpus, disks, jobs))}
		for _, j := range m.Jobs() {
			scopes = append(scopes, j.Metrics)
		}
		if len(scopes) != 1+jobs {
			t.Fatalf("got the metrics of %d jobs, want %d", len(scopes)-1, jobs)
		}
		of := perMetric(t, scopes)
		byCores := of["system.cpu.time"]
		ofJobs := 0
		for _, scope := range scopes[1:] {
			for _, n := range perMetric(t, []metricdata.ScopeMetrics{scope}) {
				ofJobs += n
			}
		}
		all := 0
		for _, name := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[b] - of[a] }) {
			all += of[name]
			t.Logf("%5d %s", of[name], name)
		}
		collector := pmetric.NewMetrics()
		var writer otlp.Writer
		for _, scope := range scopes {
			writer.Metrics(scope, collector.ResourceMetrics().AppendEmpty())
		}
		for output, got := range map[string]int{
			"agent": all, "receiver": collector.DataPointCount(), "/metrics": scraped(t, cores, true, off),
			"/metrics without jobs": scraped(t, cores, false, off),
		} {
			if got > maxSeries || got < gpus*50+7*cores {
				t.Errorf("%s, %d cores: got %d series, want at most %d", output, cores, got, maxSeries)
			}
			t.Logf("%s, %d cores: %d series, %d of them of cores, %d of jobs", output, cores, got, byCores, ofJobs)
		}
	}
}

// perMetric counts the points of each metric.
func perMetric(t *testing.T, scopes []metricdata.ScopeMetrics) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, scope := range scopes {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				counts[m.Name] += len(data.DataPoints)
			case metricdata.Sum[float64]:
				counts[m.Name] += len(data.DataPoints)
			case metricdata.Gauge[int64]:
				counts[m.Name] += len(data.DataPoints)
			case metricdata.Gauge[float64]:
				counts[m.Name] += len(data.DataPoints)
			case metricdata.Histogram[float64]:
				counts[m.Name] += len(data.DataPoints)
			case metricdata.ExponentialHistogram[float64]:
				counts[m.Name] += len(data.DataPoints)
			default:
				t.Errorf("%s: got %T, which is not counted", m.Name, data)
			}
		}
	}
	return counts
}

// scraped returns the series of a second scrape.
func scraped(t *testing.T, cores int, jobs bool, off []string) (lines int) {
	t.Helper()
	after := time.Hour
	handler, err := New(Options{
		Disabled: off, Resource: resource.Empty(), Jobs: jobs,
		Own: func() emit.Own { return emit.Own{Since: time.Unix(1, 0)} },
		Collect: func() sample.Snapshot {
			after += 10 * time.Second
			return node(after, cores, 16, 12, 64)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		time.Sleep(time.Duration(cmp.Compare(round, 0)) * (minInterval + 50*time.Millisecond))
		lines = 0
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(response.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				lines++
			}
		}
	}
	return lines
}
