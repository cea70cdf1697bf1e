package emit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

func answers(values map[sample.DriveQuantity]float64) (v sample.DriveValues) {
	for q, value := range values {
		v.Set(q, value)
	}
	return v
}

// round is a look at drives so long after boot; those without a time of their own were asked three seconds before its
// end.
func round(after time.Duration, all ...sample.Drive) sample.Snapshot {
	for i := range all {
		if all[i].At.IsZero() {
			all[i].At = booted.Add(after - 3*time.Second)
		}
	}
	return sample.Snapshot{Boot: booted, Drives: sample.Sample{At: at(after), Drives: all}}
}

// eachProtocol returns a drive of each protocol, with typical values.
func eachProtocol() []sample.Drive {
	return []sample.Drive{
		{
			ID: "naa.5000cca000000001", Device: "sda", Model: "Hitachi HDS721050DLE630", Serial: "MSK4", Firmware: "MS1OA650",
			Protocol: "ATA", Rotates: true, Size: 500 << 30, Status: sample.DriveFailing,
			Values: answers(map[sample.DriveQuantity]float64{
				sample.DriveTemperature: 25, sample.DriveTemperatureLimit: 60, sample.DrivePowerOn: 65700 * 3600,
				sample.DrivePowerCycles: 120,
				sample.DriveReallocated: 312, sample.DrivePending: 8, sample.DriveOfflineUncorrectable: 2,
				sample.DriveReportedUncorrectable: 1, sample.DriveCommandTimeouts: 3, sample.DriveCRCErrors: 0,
			}),
		},
		{
			ID: "eui.0025385b01400001", Device: "nvme0n1", Model: "Samsung SSD 990 PRO 2TB", Serial: "S7U8",
			Firmware: "4B2QJXD7",
			Protocol: "NVMe", Size: 2 << 40, Status: sample.DriveOK,
			Values: answers(map[sample.DriveQuantity]float64{
				sample.DriveTemperature: 41.5, sample.DrivePowerOn: 100 * 3600, sample.DriveWear: 0.29, sample.DriveSpare: 1,
				sample.DriveSpareMin: 0.1, sample.DriveCritical: 0, sample.DriveMediaErrors: 0, sample.DriveRead: 5e12,
				sample.DriveWritten: 7e12,
				sample.DriveSensor1: 40, sample.DriveSensor8: 61,
			}),
		},
		{
			ID: "naa.5000c50000000003", Device: "sdc", Model: "SEAGATE ST4000NM0023", Protocol: "SCSI",
			Status: sample.DriveDegraded,
			Values: answers(map[sample.DriveQuantity]float64{
				sample.DriveReallocated: 4, sample.DrivePending: 0, sample.DriveReportedUncorrectable: 0, sample.DriveWear: 1.2,
			}),
		},
	}
}

// TestMetricsOfDrives writes a drive of each protocol, and drives that did not answer: nothing of them stands as zero.
func TestMetricsOfDrives(t *testing.T) {
	then := booted.Add(-time.Hour)
	known := answers(map[sample.DriveQuantity]float64{sample.DriveTemperature: 30, sample.DriveReallocated: 1})
	all := append(eachProtocol(),
		sample.Drive{ID: "naa.4", Device: "sdd", Status: sample.DriveVanished, At: then, Values: known, Size: 1},
		sample.Drive{ID: "naa.5", Device: "sde", Status: sample.DriveAsleep, At: then, Values: known, Size: 1},
		sample.Drive{ID: "naa.6", Device: "sdf", Status: sample.DriveDegraded, At: then, Values: known, Size: 1},
		// and asleep
		sample.Drive{ID: "naa.7", Device: "sdg", Status: sample.DriveAsleep},
		// never read
		sample.Drive{ID: "naa.8", Device: "sdh", Status: sample.DriveUnread, Size: 1},
		sample.Drive{ID: "naa.10", Device: "sdk", Status: sample.DriveUnread,
			Values: answers(map[sample.DriveQuantity]float64{sample.DriveTemperature: 33})},
		sample.Drive{ID: "naa.9", Device: "sdi", Status: sample.DriveFailed}, // it does not answer
		sample.Drive{Device: "sdj", Status: sample.DriveOK, Values: known},   // without an identifier
	)
	checkText(t, "drive", metricsText(emit.NewMetrics("1.2.3").Collect(round(time.Hour, all...))))
}

// Every quantity has a place of its own.
func TestDriveQuantitiesHavePlaces(t *testing.T) {
	found := map[string]string{}
	for q := range sample.DriveQuantities {
		text := metricsText(emit.NewMetrics("").Collect(round(time.Hour,
			sample.Drive{ID: "1", Device: "sda", Values: answers(map[sample.DriveQuantity]float64{q: 1})})))
		if text == "" || found[text] != "" {
			t.Errorf("%v and %s: %s", q, found[text], text)
		}
		found[text] = q.String()
	}
}

// Values of ten minutes ago keep their time. The state is current.
func TestTimesOfDrives(t *testing.T) {
	m := emit.NewMetrics("")
	s := round(time.Hour, eachProtocol()[0])
	s.Disks.At = at(time.Hour + 9*time.Minute)
	text := metricsText(m.Collect(s))
	for name, after := range map[string]time.Duration{
		"hw.temperature": time.Hour - 3*time.Second, "hw.errors": time.Hour - 3*time.Second,
		"hw.status": time.Hour + 9*time.Minute,
	} {
		_, rest, _ := strings.Cut(text, "\n"+name+" ")
		rest, _, _ = strings.Cut(rest, "\n\n")
		if !strings.Contains(rest, booted.Add(after).Format("15:04:05")) {
			t.Errorf("%s is not of %v: %s", name, after, rest)
		}
	}
}

// A count that falls begins again at the answer before; a drive that was away meanwhile has not begun again.
func TestDriveCountersBeginAgain(t *testing.T) {
	m := emit.NewMetrics("")
	look := func(minutes int, status sample.DriveStatus, hours float64) (float64, time.Time) {
		after := time.Hour + time.Duration(minutes)*time.Minute
		d := sample.Drive{ID: "1", Device: "sda", Status: status}
		if status != sample.DriveUnread {
			d.Values.Set(sample.DrivePowerOn, hours)
		}
		scope := m.Collect(round(after, d))
		if status == sample.DriveUnread {
			return 0, time.Time{}
		}
		return value(t, scope, "stallspan.physical_disk.power_on.time", `hw.id="1", hw.name="sda", system.device.name="sda"`)
	}
	for _, test := range []struct {
		minutes int
		status  sample.DriveStatus
		hours   float64
		start   time.Time
	}{
		{0, sample.DriveOK, 8, booted},
		{10, sample.DriveOK, 9, booted},
		{20, sample.DriveUnread, 0, time.Time{}},
		{30, sample.DriveOK, 9, booted},
		{40, sample.DriveOK, 0, booted.Add(90*time.Minute - 3*time.Second)},
		{50, sample.DriveOK, 1, booted.Add(90*time.Minute - 3*time.Second)},
	} {
		if got, start := look(test.minutes, test.status, test.hours); got != test.hours || !start.Equal(test.start) {
			t.Errorf("after %d minutes: %v since %v, want %v since %v", test.minutes, got, start, test.hours, test.start)
		}
	}
}

// A drive that no longer answers reports neither firmware nor kind. Its series keeps both.
func TestSilentDriveKeepsItsSeries(t *testing.T) {
	m := emit.NewMetrics("")
	d := eachProtocol()[1]
	m.Collect(round(time.Hour, d))
	d.Status, d.Silent, d.Firmware, d.Values, d.At = sample.DriveFailed, true, "", sample.DriveValues{}, time.Time{}
	if text := metricsText(m.Collect(round(2*time.Hour, d))); !strings.Contains(text,
		`1 {hw.firmware_version="4B2QJXD7"`) ||
		!strings.Contains(text, `hw.physical_disk.type="SSD", hw.serial_number="S7U8", hw.state="failed"`) {
		t.Errorf("got %s, want the firmware and type of before", text)
	}
}

// One drive at two places is two series, and two that call themselves the same at one place are one.
func TestDrivesThatShareANumber(t *testing.T) {
	values := answers(map[sample.DriveQuantity]float64{sample.DriveTemperature: 30})
	s := round(time.Hour, sample.Drive{ID: "1", Device: "sda", Values: values},
		sample.Drive{ID: "1", Device: "sdb", Values: values},
		sample.Drive{ID: "1", Device: "sda", Values: values})
	if text := metricsText(emit.NewMetrics("").Collect(s)); strings.Count(text, "\n  30 {") != 2 {
		t.Errorf("got %s, want one point for each path", text)
	}
}

// No value of a drive's makes a point that JSON or a counter cannot hold.
func TestDriveGarbage(t *testing.T) {
	d := sample.Drive{ID: "\xff", Device: "\xff", Model: "\xff", Values: answers(map[sample.DriveQuantity]float64{
		sample.DriveTemperature: math.NaN(), sample.DrivePending: math.Inf(1), sample.DriveReallocated: -1,
		sample.DriveMediaErrors: 1e300,
	})}
	text := metricsText(emit.NewMetrics("").Collect(round(time.Hour, d)))
	for _, wrong := range []string{"NaN", "Inf", "\n  -", "pending", "\xff", "hw.temperature"} {
		if strings.Contains(text, wrong) {
			t.Errorf("there is %q: %s", wrong, text)
		}
	}
	if !strings.Contains(text, fmt.Sprintf("\n  %d {error.type=\"media\"", int64(math.MaxInt64))) {
		t.Errorf("got %s, want the largest int64", text)
	}
}

// manyDrives is a machine that is all drives.
func manyDrives(n int) (all []sample.Drive) {
	for i := range n {
		d := eachProtocol()[i%3]
		d.ID, d.Device = fmt.Sprint("naa.", i), fmt.Sprint("sd", i)
		all = append(all, d)
	}
	return all
}

// What a collection allocates depends on how many metrics there are, not on how many drives.
func TestDrivesAllocateNothing(t *testing.T) {
	allocations := func(drives int) float64 {
		m, s := emit.NewMetrics(""), round(time.Hour, manyDrives(drives)...)
		return testing.AllocsPerRun(10, func() { m.Collect(s) })
	}
	if few, many := allocations(3), allocations(24); many > few+1 {
		t.Errorf("%v allocations of three drives, %v of 24", few, many)
	}
}

// BenchmarkCollectDrives is a collection on a machine of 24 drives, with the copy that it is given.
func BenchmarkCollectDrives(b *testing.B) {
	s := server()
	s.Drives = round(time.Hour, manyDrives(24)...).Drives
	benchmarkCollect(b, s)
}
