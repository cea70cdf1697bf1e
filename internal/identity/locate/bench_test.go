package locate

import (
	"fmt"
	"testing"
)

func BenchmarkFind(b *testing.B) {
	l := New(machineOf(b, "docker_v2"), "node-7", false)
	for name, w := range map[string]Who{
		"container":  {HostName: "web-5d9c", NodeName: "node-7", ContainerID: idA, PID: 7},
		"program":    {HostName: "gpu1", HostID: ourID, PID: 1700},
		"unknown":    {HostName: "web-5d9c", ContainerID: awayID, PID: 7},
		"other_host": {HostName: "gpu2.lab.example.org", HostID: otherID, PID: 7},
		"silent":     {},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Find(w)
			}
		})
	}
	b.Run("container_parallel", func(b *testing.B) {
		w := Who{HostName: "web-5d9c", NodeName: "node-7", ContainerID: idA, PID: 7}
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Find(w)
			}
		})
	})
}

// The kernel's own files: the processes of this machine, repeated up to 1,000.
func BenchmarkScanOf1000Processes(b *testing.B) {
	pids := processes("/proc")
	if len(pids) == 0 {
		b.Skip("needs /proc")
	}
	many := &table{}
	for len(many.pids) < 1000 {
		many.pids = append(many.pids, pids...)
	}
	many.pids = many.pids[:1000]
	b.Run("cgroups", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			many.readContainers("/proc", "/")
		}
	})
	b.Run("numbers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			many.numbers.read("/proc", many.pids)
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			processes("/proc")
		}
	})
}

// A new query to a table of 100 containers with 10 processes each.
func BenchmarkFirstQuery(b *testing.B) {
	root := b.TempDir()
	for c := range 100 {
		for p := range 10 {
			put(b, root, c*10+p, fmt.Sprintf("/docker/%064x", c), 5000+c*10+p, 1+p)
		}
	}
	l := New(root, "", true)
	l.Find(Who{ContainerID: fmt.Sprintf("%064x", 1), PID: 3})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.found.kept = nil
		l.Find(Who{ContainerID: fmt.Sprintf("%064x", i%100)})
		i++
	}
}

// A process ID without a process.
func BenchmarkEndedProcess(b *testing.B) {
	l := New(machineOf(b, "docker_v2"), "", false)
	b.ReportAllocs()
	pid := 10_000
	for b.Loop() {
		l.Find(Who{HostName: "gpu1", PID: pid})
		pid = 10_000 + (pid+1)%4_000_000
	}
}

// A gateway's stream: 4,096 containers that are not here, in turn.
func BenchmarkUnknownContainers(b *testing.B) {
	l := New(machineOf(b, "docker_v2"), "", false)
	ids := make([]string, 4096)
	for i := range ids {
		ids[i] = fmt.Sprintf("%064x", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.Find(Who{ContainerID: ids[i%len(ids)], PID: 7})
		i++
	}
}
