package emit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// BenchmarkCollect is a collection on a machine of 10 disks, 8 GPUs and 16 cores, with the copy that it is given.
func BenchmarkCollect(b *testing.B) { benchmarkCollect(b, server()) }

// BenchmarkCollectWhole has the same machine with every reading that a GPU can have.
func BenchmarkCollectWhole(b *testing.B) {
	snapshot := server()
	for i := range snapshot.GPUs.GPUs {
		gpu := card(snapshot.GPUs.GPUs[i].ID, "")
		snapshot.GPUs.GPUs[i] = gpu
		snapshot.GPUs.GPUDetails = append(snapshot.GPUs.GPUDetails,
			sample.GPUDetail{GPU: gpu.ID, Values: everything(), XIDs: []sample.XID{{Code: 79, Count: 1}}})
	}
	snapshot.GPUs.DriverUse = &sample.DriverUse{}
	for i := range 16 {
		snapshot.GPUs.DriverUse.Calls = append(snapshot.GPUs.DriverUse.Calls,
			sample.DriverCall{Name: "nvmlDeviceGet" + strconv.Itoa(i), Count: 1})
	}
	benchmarkCollect(b, snapshot)
}

func server() sample.Snapshot {
	snapshot := sample.Snapshot{Boot: booted}
	for i := range 10 {
		snapshot.Disks.Disks = append(snapshot.Disks.Disks, sample.Disk{
			Name: "nvme" + strconv.Itoa(i) + "n1", ReadIOs: 1, WriteIOs: 1, Has: sample.HasDiscards | sample.HasFlushes,
		})
	}
	for _, resource := range []sample.Resource{sample.CPU, sample.Memory, sample.IO} {
		snapshot.Pressures.Pressures = append(snapshot.Pressures.Pressures, sample.Pressure{Resource: resource})
	}
	for i := range 16 {
		snapshot.Cores.Cores = append(snapshot.Cores.Cores, sample.Core{Name: "cpu" + strconv.Itoa(i)})
	}
	for i := range 8 {
		snapshot.GPUs.GPUs = append(snapshot.GPUs.GPUs, sample.GPU{ID: "GPU-" + strconv.Itoa(i), Name: "a name"})
	}
	return snapshot
}

func benchmarkCollect(b *testing.B, snapshot sample.Snapshot) {
	m := emit.NewMetrics("")
	after := time.Hour
	b.ReportAllocs()
	for b.Loop() {
		after += time.Second
		for _, s := range []*sample.Sample{&snapshot.Disks, &snapshot.Pressures, &snapshot.Cores, &snapshot.GPUs} {
			s.At = at(after)
		}
		for i := range snapshot.Disks.Disks {
			snapshot.Disks.Disks[i].ReadIOs++
		}
		for i := range snapshot.GPUs.GPUDetails {
			snapshot.GPUs.GPUDetails[i].At = after
		}
		m.Collect(snapshot.Clone())
	}
}
