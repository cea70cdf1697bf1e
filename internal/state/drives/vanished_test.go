package drives

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/test/fixture"
)

// machine is a /sys with disks, a smartctl that prints a given output for each, and a history.
type machine struct {
	t       *testing.T
	options smart.Options
	history *History
	at      time.Time
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh for a fake smartctl: %v", err)
	}
	m := &machine{t: t, history: newHistory(t, "", "boot"), at: noon}
	m.options.Root = t.TempDir()
	m.options.Smartctl = filepath.Join(t.TempDir(), "smartctl")
	script := "#!/bin/sh\nfor last; do :; done\ncat \"${0%/*}/${last##*/}.json\" || echo '" +
		`{"json_format_version": [1, 0], "smartctl": {"exit_status": 2, ` +
		`"messages": [{"string": "Smartctl open device failed: No such device", "severity": "error"}]}}` + "'\n"
	if err := os.WriteFile(m.options.Smartctl, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, m.options.Root, "sys/class/block/loop0/size", []byte("0\n"))
	return m
}

// disk adds or replaces a disk; wwid is the kernel's ID, json the output of smartctl.
func (m *machine) disk(name, wwid, json string) {
	m.t.Helper()
	m.pull(name)
	fixture.Write(m.t, m.options.Root, "sys/class/block/"+name+"/device/type", []byte("0\n"))
	if wwid != "" {
		fixture.Write(m.t, m.options.Root, "sys/class/block/"+name+"/device/wwid", []byte(wwid+"\n"))
	}
	fixture.Write(m.t, filepath.Dir(m.options.Smartctl), name+".json", []byte(json))
}

// pull removes a disk.
func (m *machine) pull(name string) {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Join(m.options.Root, "sys/class/block", name)); err != nil {
		m.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(filepath.Dir(m.options.Smartctl), name+".json"))
}

// list makes the machine's list of disks readable or not.
func (m *machine) list(readable bool) {
	m.t.Helper()
	now, then := filepath.Join(m.options.Root, "sys/class/block"), filepath.Join(m.options.Root, "sys/class/other")
	if readable {
		now, then = then, now
	}
	if err := os.Rename(now, then); err != nil {
		m.t.Fatal(err)
	}
}

// round updates the history ten minutes after the last round, and checks the statuses: "sda ok, sdb vanished".
func (m *machine) round(what, want string) []sample.Drive {
	m.t.Helper()
	source, err := smart.New(m.options)
	if err != nil {
		m.t.Fatal(err)
	}
	drives, _ := source.Round(m.t.Context())
	m.at = m.at.Add(10 * time.Minute)
	all := m.history.Update(drives, m.options.Listing(), m.at)
	var got []string
	for _, d := range all {
		got = append(got, nameOf(&d)+" "+string(d.Status))
	}
	if text := strings.Join(got, ", "); text != want {
		m.t.Errorf("%s: got %s, want %s", what, text, want)
		for _, d := range all {
			m.t.Logf("%s (%s): %s", d.Device, d.ID, d.Finding)
		}
	}
	return all
}

// output returns the output of smartctl for a disk with reallocated sectors, with a WWN or without.
func output(serial string, wwn, sectors int) string {
	return fmt.Sprintf(`{"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": 0},
		"device": {"protocol": "ATA"}, "model_name": "Example Disk", "serial_number": %q, "wwn": {"naa": 5, "oui": 3152, "id": %d},
		"smart_status": {"passed": true}, "ata_smart_attributes": {"table": [{"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": %d}}]}}`, serial, wwn, sectors)
}

const (
	sleeps = `{"json_format_version": [1, 0], "device": {"protocol": "ATA"},
		"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}}`
	noWWN = -1 // not a valid WWN
)

// A drive that is switched off does not vanish, while present, when removed, or for a command without the config.
func TestVanishedOff(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", output("A1", noWWN, 0))
	m.disk("sdb", "naa.5000c50000000002", output("B2", noWWN, 0))
	m.disk("sdc", "", output("C3", noWWN, 0))
	m.round("all disks", "sda ok, sdb ok, sdc ok")
	on := m.options.Disks
	m.options.Disks = []smart.Disk{{Device: "/dev/sdb", Off: true}}
	m.round("sdb is off", "sda ok, sdc ok")
	m.pull("sdb")
	m.round("sdb is off and removed", "sda ok, sdc ok")
	m.options.Disks = on
	m.round("sdb was off when it was removed", "sda ok, sdc ok")
	m.disk("sdb", "naa.5000c50000000002", output("B2", noWWN, 0))
	m.round("sdb is on again", "sda ok, sdb ok, sdc ok")
	m.pull("sdb")
	m.round("sdb is on and removed", "sdb vanished, sda ok, sdc ok")
	m.options.Disks = []smart.Disk{
		{Device: "/dev/sda", Off: true}, {Device: "/dev/sdb", Off: true}, {Device: "/dev/sdc", Off: true},
	}
	m.round("all are off", "")
}

// A disk that is switched off by its name has replaced another: the config means the present one.
func TestVanishedBeforeOff(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", output("A1", noWWN, 0))
	m.round("A1", "sda ok")
	m.disk("sda", "naa.5000c50000000002", output("B2", noWWN, 0))
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Off: true}}
	m.round("B2 is off", "sda vanished")
}

// While the list of disks cannot be read, no drive vanishes, and vanished drives stay vanished.
func TestVanishedUnlisted(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", output("A1", noWWN, 3))
	m.disk("sdb", "naa.5000c50000000002", output("B2", noWWN, 0))
	m.disk("sdc", "naa.5000c50000000003", output("C3", noWWN, 0))
	m.options.Disks = []smart.Disk{
		{Device: "/dev/null"}, {Device: "/dev/sdb", Type: "sat"}, {Device: "/dev/sdz", Off: true},
	}
	m.round("all disks", "sda degraded, null unread, sdb ok, sdc ok")
	m.pull("sdc")
	m.round("sdc is removed", "sdc vanished, sda degraded, null unread, sdb ok")
	m.list(false)
	m.round("unreadable list", "sdc vanished, null unread, sdb ok")
	m.list(true)
	m.round("readable list", "sdc vanished, sda degraded, null unread, sdb ok")
}

// A disk in the config vanishes like any other, and is not reported as unread in addition.
func TestVanishedNamed(t *testing.T) {
	m := newMachine(t)
	m.options.Disks = []smart.Disk{{Device: "/dev/sdb", Type: "sat"}, {Device: "/dev/sdy"}}
	m.disk("sda", "naa.5000c50000000001", output("A1", noWWN, 0))
	m.disk("sdb", "", output("B2", noWWN, 0))
	m.round("all disks", "sdy unread, sda ok, sdb ok")
	m.pull("sdb")
	all := m.round("sdb is removed", "sdb vanished, sdy unread, sda ok")
	m.round("again", "sdb vanished, sdy unread, sda ok")
	if !strings.Contains(all[0].Finding, "serial B2") || !strings.Contains(all[0].Finding, "at 12:10") {
		t.Errorf("got finding %q, want serial B2 and 12:10 in it", all[0].Finding)
	}
	m.history.boot = "later"
	m.round("after a reboot", "sdb vanished, sdy unread, sda ok")
	m.disk("sdb", "", output("D4", noWWN, 0))
	m.round("another disk in its place", "sdb vanished, sdy unread, sda ok, sdb ok")
	m.disk("sdb", "", output("B2", noWWN, 0))
	m.round("sdb is back, and the other is removed", "sdb vanished, sdy unread, sda ok, sdb ok")
}

// Disks behind a controller are known from the config only: one that is removed from it does not vanish, one that is
// replaced does.
func TestVanishedBehind(t *testing.T) {
	m := newMachine(t)
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Type: "megaraid,0"}}
	m.disk("sda", "naa.6000000000000001", output("A1", 1, 0))
	m.round("A1", "sda (megaraid,0) ok")
	m.disk("sda", "naa.6000000000000001", output("B2", 2, 0))
	m.round("B2 in its place", "sda (megaraid,0) vanished, sda (megaraid,0) ok")
	m.options.Disks = nil
	m.disk("sda", "naa.6000000000000001", `{"json_format_version": [1, 0], "model_name": "PERC H730", "serial_number": "9"}`)
	m.round("not in the config", "sda unread")
}

// A listed drive has not vanished, even if it is not read, nor has one that is no longer in the config.
func TestVanishedUnasked(t *testing.T) {
	b := newHistory(t, "", "boot")
	behind := disk("bus/0", nil)
	behind.Type = "megaraid,0"
	generic := disk("sg3", nil)
	b.Round([]sample.Drive{disk("sda", nil), disk("sdb", nil), behind, generic}, noon)
	for _, c := range []struct {
		present map[string]string
		want    string
	}{
		{map[string]string{"sda": "", "sdb": ""}, ""},
		{map[string]string{"sda": "naa.sda", "sdb": ""}, ""},
		{map[string]string{"sdq": "naa.sda", "sdb": ""}, ""},
		{map[string]string{"sda": "naa.sdz", "sdb": ""}, "sda"},
		{map[string]string{"sdb": ""}, "sda"},
	} {
		got := ""
		for _, d := range b.Assess(nil, Listing{Complete: true, Present: c.present}, noon.Add(time.Hour)) {
			got += d.Device
		}
		if got != c.want {
			t.Errorf("%v: got %q vanished, want %q", c.present, got, c.want)
		}
	}
}

// A drive with two records, as in files of earlier versions, is present in both.
func TestTwoRecords(t *testing.T) {
	d, other := disk("sda", nil), disk("sda", nil)
	other.ID = smart.Named(d.Model, d.Serial)
	b := Open("", "boot", func(err error) { t.Error(err) })
	b.records = records{
		d.ID: {Drive: d, Seen: noon, Boot: "boot"}, other.ID: {Drive: other, Seen: noon, Boot: "boot"},
	}
	d.Device = "sdq"
	if all := b.Round([]sample.Drive{d}, noon.Add(time.Hour)); len(all) != 1 || all[0].ID != "naa.sda" {
		t.Errorf("got %+v, want one drive naa.sda", all)
	}
}

// A drive whose ID changes keeps its history and gets the best ID.
func TestIDChanges(t *testing.T) {
	m := newMachine(t)
	id := func(all []sample.Drive, want string) {
		t.Helper()
		if len(all) == 0 || all[0].ID != want {
			t.Errorf("got %+v, want ID %s", all, want)
		}
	}
	m.disk("sda", "", output("A1", noWWN, 3))
	id(m.round("without a WWN", "sda degraded"), "Example_Disk_A1")
	m.disk("sda", "", output("A1", 77, 4))
	id(m.round("with a WWN", "sda predicted_failure"), "naa.5000c5000000004d")
	m.disk("sda", "", output("A1", noWWN, 5))
	id(m.round("without it again", "sda predicted_failure"), "naa.5000c5000000004d")
	m.disk("sda", "naa.5000c500000000ff", output("A1", noWWN, 5))
	id(m.round("with the kernel's ID", "sda predicted_failure"), "naa.5000c500000000ff")
	m.disk("sdq", "", output("A1", noWWN, 5))
	m.pull("sda")
	id(m.round("with another name", "sdq predicted_failure"), "naa.5000c500000000ff")
	m.disk("sdq", "", `{"json_format_version": [1, 0], "device": {"protocol": "ATA"}, "smart_status": {"passed": true}}`)
	id(m.round("without model and serial number", "sdq ok"), "naa.5000c500000000ff")
	if len(m.history.records) != 1 {
		t.Errorf("got %d records, want 1", len(m.history.records))
	}
}

// A drive that sleeps when its type is first configured has not vanished: its last reading is known.
func TestTypeIsConfigured(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "", output("A1", noWWN, 3))
	m.round("awake", "sda degraded")
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Type: "sat"}}
	m.disk("sda", "", sleeps)
	m.round("it sleeps", "sda degraded")
	m.history.boot = "later"
	m.options.Disks = nil
	m.round("after a reboot", "sda standby")
	m.disk("sda", "", output("A1", 5, 4))
	m.round("awake", "sda predicted_failure")
}

// Two namespaces of one drive have IDs and histories of their own.
func TestNamespaces(t *testing.T) {
	m := newMachine(t)
	m.disk("nvme0n1", "eui.0000000000000001", output("N1", noWWN, 0))
	m.round("one", "nvme0n1 ok")
	m.disk("nvme0n2", "eui.0000000000000002", output("N1", noWWN, 0))
	m.round("two", "nvme0n1 ok, nvme0n2 ok")
	m.pull("nvme0n1")
	m.round("the second", "nvme0n1 vanished, nvme0n2 ok")
	m.disk("nvme0n2", "eui.0000000000000009", output("N1", noWWN, 0))
	m.round("recreated", "nvme0n1 vanished, nvme0n2 ok")
}

// Cheap drives may share a WWN: each has a history of its own, and can vanish.
func TestSharedID(t *testing.T) {
	for _, wwid := range []string{"naa.5000000000000000", "naa.5000000000000001"} {
		m := newMachine(t)
		m.disk("sda", wwid, output("A1", noWWN, 0))
		m.disk("sdb", wwid, output("B2", noWWN, 12))
		for range 3 {
			all := m.round(wwid, "sdb degraded, sda ok")
			if all[0].ID != "Example_Disk_B2" || all[1].ID != "Example_Disk_A1" {
				t.Errorf("%s: got IDs %s and %s, want Example_Disk_B2 and Example_Disk_A1", wwid, all[0].ID, all[1].ID)
			}
		}
		m.disk("sdb", wwid, sleeps)
		m.round("sdb sleeps", "sdb degraded, sda ok")
		m.round("sdb still sleeps", "sdb degraded, sda ok")
		m.pull("sdb")
		m.round("sdb is removed", "sdb vanished, sda ok")
		m.disk("sda", wwid, output("B2", noWWN, 13))
		m.round("B2 has the name sda", "sda vanished, sda predicted_failure")
	}
	// The second is added after the first was removed.
	m := newMachine(t)
	m.disk("sda", "naa.5000000000000001", output("A1", noWWN, 0))
	m.round("A1", "sda ok")
	m.disk("sda", "naa.5000000000000001", output("B2", noWWN, 12))
	m.round("B2", "sda vanished, sda degraded")
	drives := []sample.Drive{
		{ID: "naa.11", Device: "sda", Serial: "1", Model: "M"}, {ID: "naa.11", Device: "sdb", Serial: "2", Model: "M"},
	}
	var none *History
	if all := none.Update(drives, Listing{}, noon); all[0].ID != "M_1" || all[1].ID != "M_2" || drives[0].ID != "naa.11" {
		t.Errorf("got %+v from %+v, want M_1 and M_2 in a copy", all, drives)
	}
}

// Forget by device removes the drives that had the device, and keeps the one that has it now.
func TestForgetDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	h := newHistory(t, path, "boot")
	a, z := disk("sda", nil), disk("sdz", nil)
	h.Round([]sample.Drive{a}, noon)
	z.Device = "sda"
	h.Round([]sample.Drive{z}, noon.Add(time.Hour))
	expect := func(which, want string) {
		t.Helper()
		forgotten, err := Forget(path, which)
		if err != nil || len(forgotten) != 1 || forgotten[0].ID != want {
			t.Errorf("%s: got %+v, %v, want %s", which, forgotten, err, want)
		}
	}
	expect("sda", "naa.sda")
	if all := h.Round([]sample.Drive{z}, noon.Add(2*time.Hour)); len(all) != 1 || len(h.records) != 1 {
		t.Errorf("got %+v and %d records, want one each", all, len(h.records))
	}
	other := disk("sdy", nil)
	z.Device, z.Type, other.Device, other.Type = "sda", "megaraid,0", "sda", "megaraid,1"
	h.Round([]sample.Drive{z, other}, noon.Add(3*time.Hour))
	forgotten, err := Forget(path, "/dev/sda")
	if err == nil || !strings.Contains(err.Error(), "2 drives are at /dev/sda") || len(forgotten) != 0 {
		t.Errorf("/dev/sda: got %+v, %v, want an error", forgotten, err)
	}
	expect("Ssdy", "naa.sdy")
	expect("sda", "naa.sdz")
}
