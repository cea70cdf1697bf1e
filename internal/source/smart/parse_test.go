package smart

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stallspan/stallspan/internal/fixture"
	"github.com/stallspan/stallspan/internal/sample"
)

// fixtures are the archives of testdata/smart: smartctl.json is what smartctl printed, drive.json what it means.
func fixtures(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	paths, err := filepath.Glob(fixture.File(t, "smart", "*.txtar"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d fixtures: %v", len(paths), err)
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

// part is the file of an archive with that name, nil where there is none.
func part(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// load gives what smartctl printed in a fixture.
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
				t.Errorf("not what drive.json says (-update writes it):\n%s", text.String())
			}
		})
	}
}

// No field is silently zero: with any one key taken out, no value appears or changes but those that come from it, and a
// drive without keys tells nothing.
func TestAbsent(t *testing.T) {
	for path, archive := range fixtures(t) {
		var doc map[string]any
		if err := json.Unmarshal(part(archive, "smartctl.json").Data, &doc); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"device", "smartctl", "json_format_version"} {
			doc["keep_"+key] = doc[key]
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
			t.Errorf("%s: without any key of it, %v is %v", path, q, value)
		}
		if d.Status == "" || d.Assessment != "" {
			t.Errorf("%s: without any key it is %q, %q", path, d.Status, d.Assessment)
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
		"cut":       {`{"smartctl": {"version": [7, 3]`, "not whole JSON"},
		"NUL":       {"{\"smartctl\": \x00}", "not whole JSON"},
		"array":     {"[1, 2]", "begins with"},
		"other":     {`{"disks": []}`, "not what smartctl"},
		"deep":      {`{"smartctl":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}", "deeper than 32"},
		"deeper":    {`{"a":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101), "deeper than 32"},
		"huge":      {`{"smartctl":"` + strings.Repeat("x", mostText) + `"}`, "longer than 4 MiB"},
		"two":       {`{"smartctl":{}} {"smartctl":{}}`, "not whole JSON"},
		"backslash": {`{"smartctl": "\`, "not whole JSON"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 300 {
			t.Errorf("%s: not one short line: %q", name, err)
		}
	}
}

func TestHugeLists(t *testing.T) {
	row := `{"id":5,"name":"Reallocated_Sector_Ct","raw":{"value":1}},`
	text := `{"smartctl":{},"device":{"name":"/dev/sda","protocol":"ATA"},"ata_smart_attributes":{"table":[` +
		strings.Repeat(row, 60_000) + `{}]}}`
	var doc document
	if err := decode([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if n := len(doc.Attributes.Table); n != mostItems {
		t.Errorf("%d attributes were kept", n)
	}
}

func TestRaw(t *testing.T) {
	for _, c := range []struct {
		id    int
		value float64
		text  string
		want  float64 // -1: not told
	}{
		{5, 1975, "1975", 1975},
		{5, 53416508262463, "2111 (12437 0)", 2111},
		{5, 53416508262463, "", 2111}, // without smartctl's reading the lowest 16 bits
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
		if c.want < 0 && got.told || c.want >= 0 && got != (number{c.want, true}) {
			t.Errorf("attribute %d, %v %q: %v, want %v", c.id, c.value, c.text, got, c.want)
		}
	}
	for text, want := range map[string]float64{
		"2725 (151 234 0)": 2725, "44670": 44670, "12345h+10m+01.000s": 12345, "12345h+10m": 12345,
	} {
		a := attribute{}
		a.Raw.Value, a.Raw.Text = number{1 << 47, true}, word(text)
		if got := a.hours(); got.value != want {
			t.Errorf("%q is %v hours", text, got)
		}
	}
}

func TestExitWords(t *testing.T) {
	if words := ExitWords(0); len(words) != 0 {
		t.Errorf("exit code 0: %q", words)
	}
	for bit := range 8 {
		if words := ExitWords(1 << bit); len(words) != 1 || words[0] == "" {
			t.Errorf("bit %d: %q", bit, words)
		}
	}
	if words := ExitWords(216); len(words) != 4 {
		t.Errorf("exit code 216: %q", words)
	}
}

// The last self-test that was not aborted counts. ATA's code is in the upper four bits; the lower tell what was left to do.
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
			t.Errorf("%s %s: %q, want %q", c.protocol, c.log, got, c.want)
		}
	}
}

// Whatever smartctl prints, Parse returns, what it gives is in its bounds, and it can be written and read again.
func FuzzParse(f *testing.F) {
	for _, archive := range fixtures(f) {
		f.Add(part(archive, "smartctl.json").Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Errorf("not one line: %q", err)
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
			t.Errorf("%v is %v", q, v)
		}
	}
	for _, s := range slices.Concat([]string{d.ID, d.Device, d.Model, d.Serial, d.Firmware, d.Protocol, d.Err, d.SelfTest}, d.AtThreshold, d.WasAt) {
		if len(s) > 1024 || strings.ContainsAny(s, "\n\r\x00\x1b") {
			t.Errorf("not a short line: %q", s)
		}
	}
	if d.Status == sample.DriveUnread && d.Err == "" || d.Status == "" && d.Err != "" {
		t.Errorf("%q, and the reason is %q", d.Status, d.Err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again sample.Drive
	if err := json.Unmarshal(text, &again); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}
