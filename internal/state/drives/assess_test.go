package drives

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/test/fixture"
)

// The report of each drive of testdata/smart, without a history, is health.json there.
func TestFixtures(t *testing.T) {
	paths, err := filepath.Glob(fixture.File(t, "smart", "*.txtar"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("got %d fixtures, %v, want at least 20", len(paths), err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(archive.Files[0].Data, path)
		if err != nil {
			t.Fatal(err)
		}
		if d.Finding != "" && (!strings.HasSuffix(d.Finding, ".") || strings.Contains(d.Finding, "\n")) {
			t.Errorf("%s: got finding %q, want one line that ends with a period", path, d.Finding)
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(ReportOf(&d)); err != nil {
			t.Fatal(err)
		}
		golden := -1
		for i := range archive.Files {
			if archive.Files[i].Name == "health.json" {
				golden = i
			}
		}
		if *update {
			if golden < 0 {
				archive.Files = append(archive.Files, txtar.File{Name: "health.json"})
				golden = len(archive.Files) - 1
			}
			archive.Files[golden].Data = text.Bytes()
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if golden < 0 {
			t.Errorf("%s: got no health.json, want one (-update writes it)", path)
		} else if want := archive.Files[golden].Data; !bytes.Equal(want, text.Bytes()) {
			t.Errorf("%s: got\n%s\nwant (-update writes it)\n%s", path, text.String(), want)
		}
	}
}

// Each rule sets the status of some drive, and no rule applies to a healthy one.
func TestRules(t *testing.T) {
	hot := disk("sda", counts{sample.DriveTemperature: 61})
	cool := disk("sda", counts{sample.DriveTemperature: 59})
	failed := disk("sda", counts{sample.DriveReallocated: 5})
	failed.Assessment = sample.DriveFails
	at := disk("sda", nil)
	at.AtThreshold = []string{"Spin_Retry_Count"}
	nvme := func(c counts) sample.Drive {
		d := disk("nvme0n1", c)
		d.Protocol, d.Rotates = "NVMe", false
		return d
	}
	warned := nvme(counts{sample.DriveCritical: 2, sample.DriveTemperature: 84})
	warned.Assessment = sample.DriveFails // smartctl reports FAILED for each bit
	exit := func(d sample.Drive, code uint8) sample.Drive {
		d.Exit = code
		return d
	}
	zero := disk("sda", counts{sample.DriveReallocated: 0})
	tested := exit(disk("sda", counts{sample.DriveReallocated: 0}), smart.ExitTests)
	tested.SelfTest = "Completed: read failure"
	hotOnce := exit(zero, smart.ExitWasAt|smart.ExitErrors)
	hotOnce.WasAt = []string{"Airflow_Temperature_Cel"}
	unknown := func(d sample.Drive) sample.Drive {
		d.Assessment = ""
		return d
	}
	fails := func(d sample.Drive) sample.Drive {
		d.Assessment = sample.DriveFails
		return d
	}
	sas := func(asc, ascq uint8) sample.Drive {
		d := exit(fails(disk("sda", nil)), smart.ExitFailing)
		d.Protocol, d.ASC, d.ASCQ, d.Exception = "SCSI", asc, ascq, "in words"
		return d
	}
	warnedOld := exit(zero, smart.ExitWasAt)
	warnedOld.HotAt, warnedOld.AgedAt = []string{"Airflow_Temperature_Cel"}, []string{"Load_Cycle_Count"}
	mute := exit(disk("sda", nil), smart.ExitCommand)
	mute.Assessment = ""
	both := exit(hot, smart.ExitTests|smart.ExitErrors|smart.ExitWasAt|smart.ExitCommand)
	for _, c := range []struct {
		drive   sample.Drive
		before  counts // a day ago; nil for no history
		want    sample.DriveStatus
		finding string
	}{
		{disk("sda", nil), nil, sample.DriveOK, ""},
		{cool, nil, sample.DriveOK, ""},
		{hot, nil, sample.DriveDegraded, "sda is too hot: 61 C"},
		{failed, nil, sample.DriveFailed, "FAILED"},
		{at, nil, sample.DriveFailing, "Spin_Retry_Count"},
		{disk("sda", counts{sample.DriveReallocated: 312}), nil, sample.DriveDegraded, "sda has 312 reallocated sectors."},
		{disk("sda", counts{sample.DriveReallocated: 312}), counts{sample.DriveReallocated: 312}, sample.DriveDegraded, "312"},
		{disk("sda", counts{sample.DriveReallocated: 312}), counts{sample.DriveReallocated: 272}, sample.DriveFailing,
			"sda has 312 reallocated sectors, 40 of them since Wednesday (40 a day)."},
		{disk("sda", counts{sample.DrivePending: 1}), counts{sample.DrivePending: 0}, sample.DriveFailing, "1 unreadable sector pending"},
		{disk("sda", counts{sample.DriveOfflineUncorrectable: 2}), counts{sample.DriveOfflineUncorrectable: 1}, sample.DriveFailing, "1 of them"},
		{disk("sda", counts{sample.DriveReportedUncorrectable: 2}), counts{sample.DriveReportedUncorrectable: 1}, sample.DriveFailing, "2 uncorrectable errors"},
		{disk("sda", counts{sample.DriveCommandTimeouts: 2}), counts{sample.DriveCommandTimeouts: 1}, sample.DriveFailing, "2 command timeouts"},
		{disk("sda", counts{sample.DriveCommandTimeouts: 2}), nil, sample.DriveOK, ""},
		{disk("sda", counts{sample.DriveCRCErrors: 200}), nil, sample.DriveOK, ""},
		{disk("sda", counts{sample.DriveCRCErrors: 200}), counts{sample.DriveCRCErrors: 150}, sample.DriveDegraded, "50 of them"},
		{nvme(counts{sample.DriveMediaErrors: 7}), nil, sample.DriveDegraded, "7 media errors"},
		{nvme(counts{sample.DriveMediaErrors: 7}), counts{sample.DriveMediaErrors: 6}, sample.DriveFailing, "7 media errors, 1 of them"},
		{nvme(counts{sample.DriveSpare: 0.09, sample.DriveSpareMin: 0.1}), nil, sample.DriveFailing, "9 % of its spare"},
		{nvme(counts{sample.DriveSpare: 0.1, sample.DriveSpareMin: 0.1}), nil, sample.DriveOK, ""},
		{nvme(counts{sample.DriveWear: 1}), nil, sample.DriveDegraded, "has used 100 % of its rated writes"},
		{nvme(counts{sample.DriveWear: 0.99}), nil, sample.DriveOK, ""},
		{nvme(counts{sample.DriveCritical: 1}), nil, sample.DriveFailed, "(critical warning 0x01): its spare"},
		{nvme(counts{sample.DriveCritical: 4}), nil, sample.DriveFailed, "reliability"},
		{nvme(counts{sample.DriveCritical: 8}), nil, sample.DriveFailed, "read-only"},
		{nvme(counts{sample.DriveCritical: 16}), nil, sample.DriveDegraded, "backup"},
		{nvme(counts{sample.DriveCritical: 32}), nil, sample.DriveDegraded, "persistent"},
		{warned, nil, sample.DriveDegraded, "temperature is outside its operating range (84 C)"},
		{exit(zero, smart.ExitAt), nil, sample.DriveFailing, "threshold for an attribute that warns of a failure."},
		{exit(zero, smart.ExitTests), nil, sample.DriveDegraded, "sda has a failed test in its self-test log."},
		{tested, nil, sample.DriveDegraded, "sda failed its last self-test (Completed: read failure)."},
		{exit(zero, smart.ExitErrors), nil, sample.DriveOK, "sda has logged failed or rejected commands"},
		{exit(zero, smart.ExitWasAt), nil, sample.DriveOK, "sda was at its maker's threshold for an attribute in the past."},
		{hotOnce, nil, sample.DriveOK, "for Airflow_Temperature_Cel in the past. It also has logged"},
		{exit(zero, smart.ExitCommand), nil, sample.DriveOK, ""}, // all values are reported
		{mute, nil, sample.DriveUnread, "sda did not report its self-assessment and its error counts, because a command failed: its health is unknown."},
		{unknown(disk("sda", nil)), nil, sample.DriveUnread, "sda did not report its self-assessment and its error counts: its health is unknown."},
		{unknown(disk("sda", counts{sample.DriveCRCErrors: 0})), nil, sample.DriveOK, ""},
		{unknown(hot), nil, sample.DriveDegraded, "60 C. It also did not report its self-assessment and its error counts: its health is unknown."},
		{exit(unknown(hot), smart.ExitCommand), nil, sample.DriveDegraded, "60 C. It also did not report its self-assessment and its error counts, because"},
		{exit(unknown(disk("sda", counts{sample.DriveReallocated: 0})), smart.ExitCommand), nil, sample.DriveOK, "did not report its self-assessment, because"},
		{exit(unknown(disk("sda", nil)), smart.ExitFailing), nil, sample.DriveFailed, "sda reports that it is failing (self-assessment FAILED)."},
		{exit(unknown(disk("sda", nil)), smart.ExitAt), nil, sample.DriveFailing, "threshold for an attribute that warns of a failure."},
		{fails(nvme(counts{sample.DriveCritical: 0x40})), nil, sample.DriveFailed, "FAILED: unknown critical warning 0x40)."},
		{fails(nvme(counts{sample.DriveCritical: 0})), nil, sample.DriveFailed, "(self-assessment FAILED)."},
		{fails(nvme(counts{sample.DriveCritical: 0x42})), nil, sample.DriveDegraded, "critical warning 0x42): its temperature"},
		{warnedOld, nil, sample.DriveDegraded,
			"sda is too hot: it is at its maker's threshold for Airflow_Temperature_Cel (30 C). " +
				"It also is at its maker's threshold for Load_Cycle_Count, which is about use and age, not an expected failure."},
		{sas(0x5d, 0x10), nil, sample.DriveFailed, "(self-assessment FAILED: in words)."},
		{sas(0x0b, 0x01), nil, sample.DriveDegraded, "sda warns that it is too hot: in words (30 C)."},
		{sas(0x0b, 0x0a), nil, sample.DriveDegraded, "too hot"},
		{sas(0x0b, 0x06), nil, sample.DriveDegraded, "sda warns: in words."},
		{both, nil, sample.DriveDegraded, "60 C. It also has a failed test in its self-test log. " +
			"It also did not report its error counts, because a command failed."}, // and nothing harmless
	} {
		b := newHistory(t, "", "boot")
		if c.before != nil {
			old := c.drive
			for q, v := range c.before {
				old.Values.Set(q, v)
			}
			b.Round([]sample.Drive{old}, noon.Add(-oneDay))
		}
		got := b.Round([]sample.Drive{c.drive}, noon)[0]
		if got.Status != c.want || !strings.Contains(got.Finding, c.finding) || (c.finding == "") != (got.Finding == "") {
			t.Errorf("%v after %v: got %s, %q, want %s, %q",
				c.drive.Values, c.before, got.Status, got.Finding, c.want, c.finding)
		}
		if (got.Status == sample.DriveOK) != (got.Remedy == "") {
			t.Errorf("%s: got remedy %q, want one unless the drive is ok", got.Status, got.Remedy)
		}
		if strings.Count(got.Finding, "did not report") > 1 {
			t.Errorf("got finding %q, want did not report once", got.Finding)
		}
	}
}

// A drive that hangs has no finding about missing values.
func TestSilentHasOneFinding(t *testing.T) {
	f := evidence{&sample.Drive{Device: "sda", Silent: true}, &Record{Silent: 2}, noon}
	if status, finding, _ := f.assess(); status != sample.DriveFailed || strings.Contains(finding, "also") {
		t.Errorf("got %s, %q, want failed with one finding", status, finding)
	}
}

// docs/health.md has the table of rules in the same order.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(fixture.File(t)), "docs", "health.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	want = append(want, "vanished vanished")
	for _, r := range rules {
		want = append(want, r.name+" "+string(r.status))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z_]+) \\|").FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("docs/health.md: got rules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
