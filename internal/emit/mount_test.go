package emit_test

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// mounted is a reading with each kind of mount, and GPUDirect Storage.
func mounted(after time.Duration) sample.Snapshot {
	at := sample.Stamp{Mono: after, Wall: booted.Add(after)}
	operations := func(n uint64) sample.MountOperations {
		return sample.MountOperations{Operations: n, Bytes: n << 17, Queue: time.Duration(n) * time.Millisecond,
			RoundTrip: time.Duration(n) * 40 * time.Millisecond, Time: time.Duration(n) * 45 * time.Millisecond}
	}
	other := operations(300)
	other.Bytes = 0
	return sample.Snapshot{Boot: booted, Mounts: sample.Sample{At: at,
		MountCounters: []sample.MountCounters{
			{
				ID: "server:/export /data", Source: "server:/export", Point: "/data", Type: "nfs4", Minor: 50,
				Read: operations(1240), Write: operations(2), Other: other, Retransmissions: 12, Timeouts: 1,
				Called: 1 << 30, Connections: 4, ReadSize: 1 << 20,
				Has: sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime | sample.HasMountTransport |
					sample.HasMountCalled,
			},
			{
				Began: sample.Stamp{Mono: 20 * time.Minute, Wall: booted.Add(20 * time.Minute)},
				ID:    "bucket /gcs", Source: "bucket", Point: "/gcs", Type: "fuse.gcsfuse", Minor: 53, Waiting: 7,
				WaitingTime: 90 * time.Second, MaxBackground: 12, Congestion: 9,
				Has: sample.HasMountWaiting | sample.HasMountLimits,
			},
			{
				ID: "10.0.0.1@tcp:/scratch /scratch", Source: "10.0.0.1@tcp:/scratch", Point: "/scratch", Type: "lustre",
				Read: sample.MountOperations{Operations: 70, Bytes: 1 << 20}, Has: sample.HasMountOperations,
			},
		},
		GPUDirect: &sample.GPUDirect{
			Read:        sample.GPUDirectTransfers{Operations: 27750, Bytes: 27758 << 20, Errors: 8},
			HasTransfer: true,
		},
	}}
}

func TestMounts(t *testing.T) {
	checkText(t, "mounts", metricsText(emit.NewMetrics("1.2.3").Collect(mounted(time.Hour))))
}
