package smart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// fixtures returns the archives of testdata/smart: smartctl.json is the output, drive.json the parsed drive.
func fixtures(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	paths, err := filepath.Glob(fixture.File(t, "smart", "*.txtar"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("got %d fixtures, %v", len(paths), err)
	}
	all := map[string]*txtar.Archive{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = archive
	}
	return all
}

// part returns a file of an archive, or nil.
func part(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// load returns the output of smartctl in a fixture.
func load(t testing.TB, name string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile(fixture.File(t, "smart", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return part(archive, "smartctl.json").Data
}

func TestParse(t *testing.T) {
	for path, archive := range fixtures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			d, err := Parse(part(archive, "smartctl.json").Data)
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(d); err != nil {
				t.Fatal(err)
			}
			golden := part(archive, "drive.json")
			if *update {
				if golden == nil {
					archive.Files = append(archive.Files, txtar.File{Name: "drive.json"})
					golden = &archive.Files[len(archive.Files)-1]
				}
				golden.Data = text.Bytes()
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if golden == nil || !bytes.Equal(golden.Data, text.Bytes()) {
				t.Errorf("got (-update writes it as drive.json)\n%s", text.String())
			}
		})
	}
}

// Without a key, its values are absent rather than 0, no other value changes, and a drive without keys has no values.
func TestAbsent(t *testing.T) {
	for path, archive := range fixtures(t) {
		var doc map[string]any
		if err := json.Unmarshal(part(archive, "smartctl.json").Data, &doc); err != nil {
			t.Fatal(err)
		}
		if smartctl, ok := doc["smartctl"].(map[string]any); ok {
			delete(smartctl, "exit_status") // it has a bit for FAILED
		}
		bare, err := json.Marshal(map[string]any{
			"smartctl": doc["smartctl"], "device": doc["device"], "json_format_version": doc["json_format_version"],
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(bare)
		if err != nil {
			t.Fatal(err)
		}
		for q, value := range d.Values.All() {
			t.Errorf("%s without its keys: got %v %v, want none", path, q, value)
		}
		if d.Status == "" || d.Assessment != "" {
			t.Errorf("%s without keys: got %q, %q, want an unread drive", path, d.Status, d.Assessment)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "printed nothing"},
		"spaces":    {" \n\t", "printed nothing"},
		"old":       {"smartctl 6.6 2016-05-31 r4324 [x86_64-linux-4.9.0-8-amd64] (local build)\n=======> UNRECOGNIZED OPTION: json", "older than 7.0"},
		"text":      {"smartctl 7.3 2022-02-28 r5338 [x86_64-linux]\n=== START OF INFORMATION SECTION ===", "call smartctl with --json"},
		"binary":    {"\x7fELF\x02\x01\x01\x00", "not smartctl's JSON"},
		"cut":       {`{"smartctl": {"version": [7, 3]`, "incomplete or invalid JSON"},
		"NUL":       {"{\"smartctl\": \x00}", "incomplete or invalid JSON"},
		"array":     {"[1, 2]", "begins with"},
		"other":     {`{"disks": []}`, "not what smartctl"},
		"deep":      {`{"smartctl":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}", "exceeded max depth"},
		"deeper":    {`{"a":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101), "not what smartctl --json prints"},
		"huge":      {`{"smartctl":"` + strings.Repeat("x", maxOutput) + `"}`, "longer than 4 MiB"},
		"two":       {`{"smartctl":{}} {"smartctl":{}}`, "incomplete or invalid JSON"},
		"backslash": {`{"smartctl": "\`, "incomplete or invalid JSON"},

		"status":     {`{"smartctl":{"exit_status":0},"smart_status":"FAILED","temperature":{"current":30}}`, "smart_status is not what smartctl prints"},
		"passed":     {`{"smartctl":{"exit_status":0},"smart_status":{"passed":"FAILED"}}`, "smart_status.passed is not what"},
		"attributes": {`{"smartctl":{"exit_status":0},"smart_status":{"passed":true},"ata_smart_attributes":[]}`, "ata_smart_attributes is not what"},
		"table":      {`{"smartctl":{"exit_status":0},"ata_smart_attributes":{"table":{"5":"now"}},"temperature":{"current":30}}`, "ata_smart_attributes.table is not what"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		} else if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 300 {
			t.Errorf("%s: got error %q, want one short line", name, err)
		}
	}
}

func TestHugeLists(t *testing.T) {
	row := `{"id":5,"name":"Reallocated_Sector_Ct","raw":{"value":1}},`
	text := `{"smartctl":{},"device":{"name":"/dev/sda","protocol":"ATA"},"ata_smart_attributes":{"table":[` +
		strings.Repeat(row, 60_000) + `{"id":12,"name":"Power_Cycle_Count","raw":{"value":7}}]}}`
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if n, known := d.Values.Get(sample.DriveReallocated); n != 1 {
		t.Errorf("got %v, %v of the first attribute, want 1", n, known)
	}
	if n, known := d.Values.Get(sample.DrivePowerCycles); known {
		t.Errorf("got %v of the last attribute, want none after %d", n, maxItems)
	}
}

func TestRaw(t *testing.T) {
	for _, c := range []struct {
		id    int
		value float64
		text  string
		want  float64 // -1: unknown
	}{
		{5, 1975, "1975", 1975},
		{5, 53416508262463, "2111 (12437 0)", 2111},
		{5, 53416508262463, "", 2111}, // the lowest 16 bits, without smartctl's text
		{188, 4295032833, "1 1 1", 1},
		{188, 4295032833, "4295032833", 1},
		{188, 12885098501, "12885098501", 5},
		{188, 3, "3", 3},
		{187, 65535, "65535", 65535},
		{197, math.MaxUint64, "", -1},
		{197, -1, "", -1},
		{197, 1.5, "", -1},
		{198, 0, "0x000000000000", 0},
	} {
		a := attribute{}
		a.Raw.Value, a.Raw.Text = number{c.value, true}, word(c.text)
		got := a.count(c.id)
		if c.want < 0 && got.known || c.want >= 0 && got != (number{c.want, true}) {
			t.Errorf("attribute %d, %v %q: got %v, want %v", c.id, c.value, c.text, got, c.want)
		}
	}
	for text, want := range map[string]float64{
		"2725 (151 234 0)": 2725, "44670": 44670, "12345h+10m+01.000s": 12345, "12345h+10m": 12345,
	} {
		a := attribute{}
		a.Raw.Value, a.Raw.Text = number{1 << 47, true}, word(text)
		if got := a.hours(); got.value != want {
			t.Errorf("%q: got %v hours, want %v", text, got, want)
		}
	}
}

// An attribute at its threshold warns of a failure unless its flags deny it.
func TestAtThreshold(t *testing.T) {
	row := func(id int, name, flags string) string {
		return fmt.Sprintf(`{"id":%d,"name":%q,"when_failed":"now","flags":%s,"raw":{"value":7}}`, id, name, flags)
	}
	preFailure, oldAge := `{"prefailure":true}`, `{"prefailure":false}`
	rows := []string{
		row(3, "Spin_Up_Time", preFailure), row(10, "Spin_Retry_Count", `{}`), row(13, "Odd", `"odd"`), row(14, "", preFailure),
		row(190, "Airflow_Temperature_Cel", oldAge), row(194, "", oldAge), row(231, "Drive_Temp", oldAge),
		row(190, "Temperature", preFailure),
		row(193, "Load_Cycle_Count", oldAge), row(190, "Unknown_Attribute", oldAge), row(4, "Start_Attempts", oldAge),
	}
	d, err := Parse([]byte(`{"smartctl":{"exit_status":0},"device":{"protocol":"ATA"},"ata_smart_attributes":{"table":[` + strings.Join(rows, ",") + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want []string }{
		{d.AtThreshold, []string{"Spin_Up_Time", "Spin_Retry_Count", "Odd", "attribute 14", "Temperature"}},
		{d.HotAt, []string{"Airflow_Temperature_Cel", "attribute 194", "Drive_Temp"}},
		{d.AgedAt, []string{"Load_Cycle_Count", "Unknown_Attribute", "Start_Attempts"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Wear comes from known attributes only, and not from a contradictory one.
func TestWear(t *testing.T) {
	for _, c := range []struct {
		name              string
		value, raw, limit int
		want              float64 // -1: unknown
	}{
		{"SSD_Life_Left", 60, 7, 10, 0.4},
		{"Perc_Rated_Life_Used", 99, 1, 1, 0.01},
		{"Perc_Rated_Life_Used", 88, 12, 0, 0.12},
		{"Percent_Lifetime_Used", 10, 90, 1, 0.9},
		{"Percent_Lifetime_Used", 100, 90, 1, -1},
		{"Lifetime_Left", 60, 60, 0, 0.4},
		{"Lifetime_Left", 60, 40, 0, 0.4},
		{"Lifetime_Remaining%", 99, 99, 5, 0.01},
		{"Lifetime_Remaining%", 100, 72, 5, -1}, // contradictory
		{"DriveLife_Remaining%", 60, 4000, 0, 0.4},
		{"PCT_Life_Remaining", 97, 97, 0, 0.03},
		{"Wear_Leveling_Count", 97, 60, 0, 0.03},
		{"Wear_Leveling_Count", 100, 1005057, 100, -1}, // decreases to 100
		{"", 0, 0, 0, -1},
		{"Unknown_Attribute", 0, 0, 0, -1},
	} {
		text := fmt.Sprintf(`{"smartctl":{"exit_status":0},"device":{"protocol":"ATA"},"ata_smart_attributes":{"table":[
			{"id":1,"name":%q,"value":%d,"thresh":%d,"raw":{"value":%d}}]}}`, c.name, c.value, c.limit, c.raw)
		d, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, known := d.Values.Get(sample.DriveWear); known != (c.want >= 0) || known && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s %d, raw %d, threshold %d: got %v, %v, want %v", c.name, c.value, c.raw, c.limit, got, known, c.want)
		}
	}
}

// Sensors keep their numbers if one before them is absent, and impossible temperatures are left out.
func TestSensors(t *testing.T) {
	for list, want := range map[string]map[sample.DriveQuantity]float64{
		`[40, null, 95]`:                  {sample.DriveSensor1: 40, sample.DriveSensor3: 95},
		`[-273, "many", 41, {}, 70000]`:   {sample.DriveSensor3: 41},
		`[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`: {sample.DriveSensor1: 1, sample.DriveSensor2: 2, sample.DriveSensor3: 3, sample.DriveSensor4: 4, sample.DriveSensor5: 5, sample.DriveSensor6: 6, sample.DriveSensor7: 7, sample.DriveSensor8: 8},
		`{"1": 40}`:                       {},
		`95`:                              {},
	} {
		d, err := Parse([]byte(`{"smartctl":{"exit_status":0},"smart_status":{"passed":true},"device":{"protocol":"NVMe"},"nvme_smart_health_information_log":{"critical_warning":0,"temperature_sensors":` + list + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		got := maps.Collect(d.Values.All())
		delete(got, sample.DriveCritical)
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", list, got, want)
		}
	}
}

// A drive whose only value is an exit code of failure was read: its status is not unread.
func TestFailedByExitCode(t *testing.T) {
	for code, want := range map[int]sample.DriveStatus{8: "", 16: "", 4: sample.DriveUnread, 96: sample.DriveUnread} {
		d, err := Parse(fmt.Appendf(nil, `{"smartctl":{"exit_status":%d},"device":{"name":"/dev/sda","protocol":"ATA"}}`, code))
		if err != nil || d.Status != want || int(d.Exit) != code {
			t.Errorf("exit code %d: got %q, %q, %v, want a drive that was read", code, d.Status, d.Err, err)
		}
	}
}

func TestExitWords(t *testing.T) {
	if words := ExitWords(0); len(words) != 0 {
		t.Errorf("exit code 0: got %q, want nothing", words)
	}
	for bit := range 8 {
		if words := ExitWords(1 << bit); len(words) != 1 || words[0] == "" {
			t.Errorf("bit %d: got %q, want one clause", bit, words)
		}
	}
	if words := ExitWords(216); len(words) != 4 {
		t.Errorf("exit code 216: got %q, want four clauses", words)
	}
}

// The last self-test that was not aborted counts. ATA's code is in the upper four bits, above the remaining share.
func TestSelfTest(t *testing.T) {
	ata := func(statuses string) string {
		return `"ata_smart_self_test_log":{"standard":{"table":[` + statuses + `]}}`
	}
	for _, c := range []struct{ protocol, log, want string }{
		{"ATA", ata(``), ""},
		{"ATA", ata(`{"status":{"value":0,"string":"Completed without error"}},{"status":{"value":121,"string":"Completed: read failure"}}`), ""},
		{"ATA", ata(`{"status":{"value":121,"string":"Completed: read failure"}},{"status":{"value":0}}`), "Completed: read failure"},
		{"ATA", ata(`{"status":{"value":249}},{"status":{"value":25}},{"status":{"value":57,"string":"Fatal or unknown error"}}`), "Fatal or unknown error"},
		{"ATA", ata(`{"status":{"value":96}}`), "code 6"},
		{"ATA", ata(`{"status":{"value":"many"}},{"status":"failed"},7`), ""},
		{"ATA", `"ata_smart_self_test_log":{"extended":{"table":[{"status":{"value":64}}]},"standard":{"table":[{"status":{"value":0}}]}}`, "code 4"},
		{"NVMe", `"nvme_self_test_log":{"table":[null,{"self_test_result":{"value":1}},{"self_test_result":{"value":7,"string":"Completed: failed segments"}}]}`,
			"Completed: failed segments"},
		{"NVMe", `"nvme_self_test_log":{"table":[{"self_test_result":{"value":4}},{"self_test_result":{"value":9}}]}`, ""},
		{"SCSI", `"scsi_self_test_0":{"result":{"value":15}},"scsi_self_test_1":{"result":{"value":4,"string":"Failed in segment"}}`, "Failed in segment"},
		{"SCSI", `"scsi_self_test_0":{"result":{"value":0}},"scsi_self_test_1":{"result":{"value":4}}`, ""},
		{"", ata(`{"status":{"value":121}}`), ""},
	} {
		var doc document
		if err := decode([]byte("{"+c.log+"}"), &doc); err != nil {
			t.Fatal(err)
		}
		if got := doc.failedTest(c.protocol); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.protocol, c.log, got, c.want)
		}
	}
}

// Any output gives bounded values that can be written and read again.
func FuzzParse(f *testing.F) {
	for _, archive := range fixtures(f) {
		f.Add(part(archive, "smartctl.json").Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("got error %q, want one line", err)
			}
			return
		}
		check(t, &d)
	})
}

func check(t *testing.T, d *sample.Drive) {
	t.Helper()
	for q, v := range d.Values.All() {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && q != sample.DriveTemperature {
			t.Errorf("got %v %v, want a finite number that is not negative unless a temperature", q, v)
		}
	}
	for _, s := range slices.Concat([]string{
		d.ID, d.Device, d.Model, d.Serial, d.Firmware, d.Protocol, d.Err, d.SelfTest, d.Exception,
	},
		d.AtThreshold, d.HotAt, d.AgedAt, d.WasAt) {
		if len(s) > 1024 || strings.ContainsAny(s, "\n\r\x00\x1b") {
			t.Errorf("got text %q, want a short line", s)
		}
	}
	if d.Status == sample.DriveUnread && d.Err == "" || d.Status == "" && d.Err != "" {
		t.Errorf("got status %q with error %q, want an error exactly if unread", d.Status, d.Err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again sample.Drive
	if err := json.Unmarshal(text, &again); err != nil {
		t.Errorf("got %s, %v, want the same drive after reading it", text, err)
	}
}
