package window

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func patient(device string, status sample.DriveStatus) sample.Drive {
	d := sample.Drive{Device: device, Status: status, Finding: device + " has 312 reallocated sectors, 40 of them since Monday.", Remedy: "Replace " + device + "."}
	if status == sample.DriveOK {
		d.Finding, d.Remedy = "", ""
	}
	return d
}

// worked is a report of a load that moved so much on each disk.
func worked(verdict Verdict, under []string, moved map[string]uint64) *Report {
	r := &Report{Verdict: verdict, Window: Window{Kind: ModelLoad, Seen: Seen{Under: under}, End: sample.Stamp{Mono: 10 * time.Second}}}
	for name, bytes := range moved {
		r.Disks = append(r.Disks, DiskUse{Name: name, ReadBytes: bytes, ReadOperations: bytes / 4096})
	}
	return r
}

func TestDiskFailing(t *testing.T) {
	both := map[string]uint64{"sda": 100 << 20, "sdb": 1 << 20}
	for i, c := range []struct {
		r      *Report
		drives []sample.Drive
		want   string
	}{
		{worked(StorageBound, nil, both), []sample.Drive{patient("sda", sample.DriveFailing)}, "sda"},
		{worked(Mixed, nil, both), []sample.Drive{patient("sda", sample.DriveDegraded)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{patient("sda", sample.DriveVanished)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{patient("sda", sample.DriveFailed)}, "sda"},
		{worked(StorageBound, nil, both), []sample.Drive{patient("sdb", sample.DriveFailed)}, ""}, // it hardly did anything
		{worked(StorageBound, []string{"sdb"}, both), []sample.Drive{patient("sda", sample.DriveFailed), patient("sdb", sample.DriveFailed)}, "sdb"},
		{worked(StorageBound, []string{"sdc"}, nil), []sample.Drive{patient("sdc", sample.DriveFailed)}, "sdc"}, // it hangs
		{worked(StorageBound, nil, both), []sample.Drive{patient("sda", sample.DriveOK), patient("sda", sample.DriveUnread), patient("sda", sample.DriveAsleep)}, ""},
		{worked(StorageBound, nil, map[string]uint64{"sda": 0}), []sample.Drive{patient("sda", sample.DriveFailed)}, ""},
		{worked(GPUBound, nil, both), []sample.Drive{patient("sda", sample.DriveFailed)}, ""},
		{worked(CPUBound, nil, both), []sample.Drive{patient("sda", sample.DriveFailed)}, ""},
		{worked(Unknown, nil, both), []sample.Drive{patient("sda", sample.DriveFailed)}, ""},
		{worked(StorageBound, nil, nil), []sample.Drive{patient("sda", sample.DriveFailed)}, ""},
		{worked(StorageBound, nil, both), nil, ""},
	} {
		c.r.failing(c.drives)
		f := c.r.Found(DiskFailing)
		if (f != nil) != (c.want != "") || f != nil && (f.Text != c.want+" has 312 reallocated sectors, 40 of them since Monday." || f.Remedy != "Replace "+c.want+".") {
			t.Errorf("%d: %+v, want %q", i, c.r.Findings, c.want)
		}
	}
	r := worked(Unknown, nil, both)
	r.From = []string{"sdb"}
	r.Slow = true
	if r.failing([]sample.Drive{patient("sdb", sample.DriveFailing)}); r.Found(DiskFailing) == nil {
		t.Error("a slow window that read from it")
	}
}

// That a window took too long is known last, and says what is known of its disks; once.
func TestDiskFailingUnderASlowLoad(t *testing.T) {
	drives := []sample.Drive{patient("sda", sample.DriveFailing)}
	r := worked(Unknown, nil, map[string]uint64{"sda": 1 << 30})
	r.failing(drives)
	if r.Took(Limits{Set: time.Minute}); len(r.Findings) != 0 {
		t.Errorf("within its limit: %+v", r.Findings)
	}
	r.Took(Limits{Set: time.Second})
	if r.Took(Limits{Set: time.Second}); len(r.Findings) != 1 {
		t.Errorf("over its limit: %+v", r.Findings)
	}
	text, err := json.Marshal(r)
	if want := `"findings":[{"kind":"disk_failing","text":"sda has 312 reallocated sectors, 40 of them since Monday.","remedy":"Replace sda."}]`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: %s", err, text)
	}
	bound := worked(StorageBound, nil, map[string]uint64{"sda": 1 << 30})
	bound.failing(drives)
	if bound.Took(Limits{Set: time.Second}); len(bound.Findings) != 1 {
		t.Errorf("storage-bound and slow: %+v", bound.Findings)
	}
}

// An array of many disks has the worst few told, and a drive that is listed twice once.
func TestWorstDisksFailing(t *testing.T) {
	r := worked(StorageBound, []string{"sda", "sdb", "sdc", "sdd", "sde"}, nil)
	r.failing([]sample.Drive{patient("sdc", sample.DriveVanished), patient("sdc", sample.DriveVanished), patient("sdz", sample.DriveFailed),
		patient("sde", sample.DriveFailed), patient("sda", sample.DriveFailing), patient("sdb", sample.DriveDegraded)})
	var told []string
	for _, f := range r.Findings {
		told = append(told, f.Text[:3])
	}
	if !slices.Equal(told, []string{"sdc", "sde", "sda"}) {
		t.Error(fmt.Sprint(told))
	}
}
