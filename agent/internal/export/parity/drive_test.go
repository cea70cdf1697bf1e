package parity_test

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestParityOfDrives compares the metrics of drives, which no recording has.
func TestParityOfDrives(t *testing.T) {
	p := newParity(t)
	agent, other := emit.NewMetrics(version), emit.NewMetrics(version)
	for round := range 3 {
		at := sample.Stamp{Mono: time.Duration(round+6) * 10 * time.Minute}
		at.Wall = booted.Add(at.Mono)
		s := sample.Snapshot{Boot: booted, Drives: sample.Sample{At: at}}
		for i, status := range []sample.DriveStatus{sample.DriveOK, sample.DriveFailing, sample.DriveAsleep,
			sample.DriveVanished, sample.DriveUnread} {
			d := sample.Drive{ID: string(rune('1' + i)), Device: string(rune('a' + i)), Model: "M", Serial: "S", Firmware: "F",
				Size: 1 << 40, Status: status, At: at.Wall.Add(-time.Second)}
			for q := range sample.DriveQuantities {
				d.Values.Set(q, float64(int(q)+10*(2-round))) // every counter begins again
			}
			s.Drives.Drives = append(s.Drives.Drives, d)
		}
		p.metrics(t, agent.Collect(s.Clone()), other.Collect(s))
	}
	if p.points < 3*2*int(sample.DriveQuantities) {
		t.Errorf("%d points", p.points)
	}
}
