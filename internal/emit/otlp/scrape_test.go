package otlp_test

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/sample"
)

var booted = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// machine is a server with 10 used block devices, partitions included, and 4 unused loop devices, 8 GPUs with all
// readings, 16 cores, and a job of 8 processes with memory on a GPU.
func machine() sample.Snapshot {
	s := sample.Snapshot{Boot: booted}
	for i, name := range []string{
		"nvme0n1", "nvme0n1p1", "nvme0n1p2", "nvme1n1", "nvme1n1p1", "nvme2n1", "nvme3n1", "sda", "sda1", "md0",
		"loop0", "loop1", "loop2", "loop3",
	} {
		d := sample.Disk{Name: name, Has: sample.HasDiscards | sample.HasFlushes}
		if i < 10 {
			d.ReadIOs, d.WriteIOs, d.IOTicks = 1000, 1000, time.Second
		}
		s.Disks.Disks = append(s.Disks.Disks, d)
	}
	for _, resource := range []sample.Resource{sample.CPU, sample.Memory, sample.IO} {
		s.Pressures.Pressures = append(s.Pressures.Pressures, sample.Pressure{Resource: resource})
	}
	for i := range 16 {
		s.Cores.Cores = append(s.Cores.Cores, sample.Core{Name: "cpu" + strconv.Itoa(i)})
	}
	for i := range 8 {
		gpu := sample.GPU{
			ID: "GPU-5f1a0c3e-0000-0000-0000-00000000000" + strconv.Itoa(i), Name: "NVIDIA H200", Driver: "570.86.15", Index: i,
			MemoryUsed: 1 << 30, MemoryTotal: 141 << 30, Temperature: 40, Power: 300, Energy: 1e6,
			LinkWidth: 16, LinkGeneration: 5, LinkWidthMax: 16, LinkGenerationMax: 5,
			Has: sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy |
				sample.HasLink | sample.HasLinkMax,
		}
		s.GPUs.GPUs = append(s.GPUs.GPUs, gpu)
		s.GPUs.GPUProcesses = append(s.GPUs.GPUProcesses, sample.GPUProcess{GPU: gpu.ID, PID: 1000 + i, Memory: 1 << 30,
			Has: true})
		s.Jobs.Processes = append(s.Jobs.Processes, sample.Process{PID: 1000 + i, Job: "train", HasIO: true,
			Started: time.Minute})
	}
	age(&s, time.Hour)
	return s
}

// age lets the machine work for so long.
func age(s *sample.Snapshot, d time.Duration) {
	for _, x := range []*sample.Sample{&s.Disks, &s.Pressures, &s.Cores, &s.Jobs, &s.GPUs} {
		x.At.Mono += d
		x.At.Wall = booted.Add(x.At.Mono)
	}
	for i := range 10 {
		disk := &s.Disks.Disks[i]
		disk.ReadIOs, disk.ReadBytes, disk.ReadTicks = disk.ReadIOs+100, disk.ReadBytes+1<<20, disk.ReadTicks+d/20
		disk.WriteIOs, disk.WriteBytes, disk.WriteTicks = disk.WriteIOs+10, disk.WriteBytes+1<<16, disk.WriteTicks+d/50
		disk.IOTicks, disk.TimeInQueue = disk.IOTicks+d/10, disk.TimeInQueue+d/5
	}
	for i := range s.Cores.Cores {
		s.Cores.Cores[i].User += d / 4
		s.Cores.Cores[i].Idle += d / 2
	}
	for i := range s.GPUs.GPUs {
		s.GPUs.GPUs[i].Busy += d / 3
		s.GPUs.GPUs[i].Energy += 300 * d.Seconds()
	}
}

// BenchmarkScrape is what leaves once a collection interval: the metrics of a snapshot, in pdata. The copy that Collect
// is given is part of it.
func BenchmarkScrape(b *testing.B) {
	snapshot := machine()
	m := emit.NewMetrics("1.2.3")
	var w otlp.Writer
	points := 0
	b.ReportAllocs()
	for b.Loop() {
		age(&snapshot, 10*time.Second)
		out := pmetric.NewMetrics()
		w.Metrics(m.Collect(snapshot.Clone()), out.ResourceMetrics().AppendEmpty())
		points = out.DataPointCount()
	}
	b.ReportMetric(float64(points), "points")
}

// BenchmarkCollect is the part of BenchmarkScrape before pdata.
func BenchmarkCollect(b *testing.B) {
	snapshot := machine()
	m := emit.NewMetrics("1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		age(&snapshot, 10*time.Second)
		m.Collect(snapshot.Clone())
	}
}

// BenchmarkMetrics is the part of BenchmarkScrape that writes pdata.
func BenchmarkMetrics(b *testing.B) {
	snapshot := machine()
	m := emit.NewMetrics("1.2.3")
	m.Collect(snapshot.Clone())
	age(&snapshot, 10*time.Second)
	scope := m.Collect(snapshot.Clone())
	var w otlp.Writer
	b.ReportAllocs()
	for b.Loop() {
		w.Metrics(scope, pmetric.NewMetrics().ResourceMetrics().AppendEmpty())
	}
}

// BenchmarkChildren is what a span that waited twice costs a processor.
func BenchmarkChildren(b *testing.B) {
	s := nestedSpan()
	s.Children[1].Children = nil
	parent := ptrace.NewSpanSlice().AppendEmpty()
	b.ReportAllocs()
	for b.Loop() {
		otlp.Children(s.Children, parent, ptrace.NewSpanSlice())
	}
}
