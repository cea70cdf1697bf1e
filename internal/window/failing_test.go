package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func drive(device string, status sample.DriveStatus) sample.Drive {
	d := sample.Drive{Device: device, Status: status, Finding: device +
		" has 312 reallocated sectors, 40 of them since Monday.", Remedy: "Replace " + device + "."}
	if status == sample.DriveOK {
		d.Finding, d.Remedy = "", ""
	}
	return d
}

// worked returns the report of a load that moved so many bytes on each disk.
func worked(verdict Verdict, under []string, moved map[string]uint64) *Report {
	r := &Report{Judgement: Judgement{Verdict: verdict}, Window: Window{Kind: ModelLoad, Seen: Seen{Under: under},
		End: sample.Stamp{Mono: 10 * time.Second}}}
	for name, bytes := range moved {
		r.Disks = append(r.Disks, DiskUse{Name: name, ReadBytes: bytes, ReadOperations: bytes / 4096})
	}
	return r
}

func assess(t *testing.T, r *Report, drives ...sample.Drive) {
	t.Helper()
	r.Further = find(&view{&r.Window, newHistory(t), &Machine{Drives: drives}}, r)
}

func TestDiskFailing(t *testing.T) {
	both := map[string]uint64{"sda": 100 << 20, "sdb": 1 << 20}
	for i, c := range []struct {
		r      *Report
		drives []sample.Drive
		want   string
	}{
		{worked(StorageBound, nil, both), []sample.Drive{drive("sda", sample.DriveFailing)}, "sda"},
		{worked(Mixed, nil, both), []sample.Drive{drive("sda", sample.DriveDegraded)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{drive("sda", sample.DriveVanished)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{drive("sda", sample.DriveFailed)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{drive("sdb", sample.DriveFailed)}, ""}, // it moved little
		{worked(StorageBound, []string{"sdb"}, both), []sample.Drive{drive("sda", sample.DriveFailed), drive("sdb", sample.DriveFailed)}, "sdb"},
		{worked(StorageBound, []string{"sdc"}, nil), []sample.Drive{drive("sdc", sample.DriveFailed)}, "sdc"}, // it hangs
		{worked(StorageBound, nil, both), []sample.Drive{drive("sda", sample.DriveOK), drive("sda", sample.DriveUnread), drive("sda", sample.DriveAsleep)}, ""},
		{worked(StorageBound, nil, map[string]uint64{"sda": 0}), []sample.Drive{drive("sda", sample.DriveFailed)}, ""},
		{worked(GPUBound, nil, both), []sample.Drive{drive("sda", sample.DriveFailed)}, ""},
		{worked(CPUBound, nil, both), []sample.Drive{drive("sda", sample.DriveFailed)}, ""},
		{worked(Unknown, nil, both), []sample.Drive{drive("sda", sample.DriveFailed)}, ""},
		{worked(StorageBound, nil, nil), []sample.Drive{drive("sda", sample.DriveFailed)}, ""},
		{worked(StorageBound, nil, both), nil, ""},
	} {
		assess(t, c.r, c.drives...)
		var want []Finding
		if c.want != "" {
			d := drive(c.want, sample.DriveFailing)
			want = []Finding{FailingDisk{d.Finding, d.Remedy}}
		}
		if !slices.Equal(c.r.Findings, want) {
			t.Errorf("%d: %+v, want %+v", i, c.r.Findings, want)
		}
	}
	r := worked(Unknown, nil, both)
	r.From = []string{"sdb"}
	r.Slow = true
	if assess(t, r, drive("sdb", sample.DriveFailing)); r.Finding(DiskFailing) == nil {
		t.Errorf("a slow window that read from sdb: %+v, want %s", r.Findings, DiskFailing)
	}
}

// TestDiskFailingUnderASlowLoad: limits are applied last. A slow window gets the findings about its disks, once.
func TestDiskFailingUnderASlowLoad(t *testing.T) {
	bad := drive("sda", sample.DriveFailing)
	r := worked(Unknown, nil, map[string]uint64{"sda": 1 << 30})
	assess(t, r, bad)
	if r.ApplyLimits(Limits{Set: time.Minute}); len(r.Findings) != 0 {
		t.Errorf("within its limit: %+v, want no finding", r.Findings)
	}
	r.ApplyLimits(Limits{Set: time.Second})
	if r.ApplyLimits(Limits{Set: time.Second}); len(r.Findings) != 1 {
		t.Errorf("over its limit: %+v, want one finding", r.Findings)
	}
	bound := worked(StorageBound, nil, map[string]uint64{"sda": 1 << 30})
	assess(t, bound, bad)
	if bound.ApplyLimits(Limits{Set: time.Second}); len(bound.Findings) != 1 {
		t.Errorf("storage-bound and slow: %+v, want one finding", bound.Findings)
	}
}

// TestWorstDisksFailing: of many disks only the worst are reported, and a drive that is listed twice once.
func TestWorstDisksFailing(t *testing.T) {
	r := worked(StorageBound, []string{"sda", "sdb", "sdc", "sdd", "sde"}, nil)
	assess(t, r, drive("sdc", sample.DriveVanished), drive("sdc", sample.DriveVanished), drive("sdz", sample.DriveFailed),
		drive("sde", sample.DriveFailed), drive("sda", sample.DriveFailing), drive("sdb", sample.DriveDegraded))
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.(FailingDisk).Text[:3])
	}
	if want := []string{"sdc", "sde", "sda"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
