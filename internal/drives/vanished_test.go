package drives

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/fixture"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// machine is one of a test's own: a /sys with disks, a smartctl that says of each what the test wants, and a book.
type machine struct {
	t       *testing.T
	options smart.Options
	book    *Book
	at      time.Time
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	m := &machine{t: t, book: book(t, "", "boot"), at: noon}
	m.options.Root = t.TempDir()
	m.options.Smartctl = filepath.Join(t.TempDir(), "smartctl")
	script := "#!/bin/sh\nfor last; do :; done\ncat \"${0%/*}/${last##*/}.json\" || echo '" +
		`{"json_format_version": [1, 0], "smartctl": {"exit_status": 2, "messages": [{"string": "Smartctl open device failed: No such device", "severity": "error"}]}}` + "'\n"
	if err := os.WriteFile(m.options.Smartctl, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, m.options.Root, "sys/class/block/loop0/size", []byte("0\n"))
	return m
}

// disk adds a disk, or has another one take its name; wwid is the kernel's word, json smartctl's.
func (m *machine) disk(name, wwid, json string) {
	m.t.Helper()
	m.pull(name)
	fixture.Write(m.t, m.options.Root, "sys/class/block/"+name+"/device/type", []byte("0\n"))
	if wwid != "" {
		fixture.Write(m.t, m.options.Root, "sys/class/block/"+name+"/device/wwid", []byte(wwid+"\n"))
	}
	fixture.Write(m.t, filepath.Dir(m.options.Smartctl), name+".json", []byte(json))
}

// pull takes a disk out.
func (m *machine) pull(name string) {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Join(m.options.Root, "sys/class/block", name)); err != nil {
		m.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(filepath.Dir(m.options.Smartctl), name+".json"))
}

// list has the machine's list of disks be readable or not.
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

// round asks them ten minutes after the last round, and wants to hear just this: "sda ok, sdb vanished".
func (m *machine) round(what, want string) []sample.Drive {
	m.t.Helper()
	source, err := smart.New(m.options)
	if err != nil {
		m.t.Fatal(err)
	}
	asked, _ := source.Round(m.t.Context())
	m.at = m.at.Add(10 * time.Minute)
	all := m.book.Take(asked, m.options.Listing(), m.at)
	var got []string
	for _, d := range all {
		got = append(got, name(&d)+" "+string(d.Status))
	}
	if text := strings.Join(got, ", "); text != want {
		m.t.Errorf("%s: %s; want %s", what, text, want)
		for _, d := range all {
			m.t.Logf("%s (%s): %s", d.Device, d.ID, d.Finding)
		}
	}
	return all
}

// says is smartctl's answer of a disk with so many reallocated sectors; with a wwn of its own or without.
func says(serial string, wwn, sectors int) string {
	return fmt.Sprintf(`{"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": 0}, "device": {"protocol": "ATA"},
		"model_name": "Example Disk", "serial_number": %q, "wwn": {"naa": 5, "oui": 3152, "id": %d}, "smart_status": {"passed": true},
		"ata_smart_attributes": {"table": [{"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": %d}}]}}`, serial, wwn, sectors)
}

const (
	sleeps = `{"json_format_version": [1, 0], "smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]},
		"device": {"protocol": "ATA"}}`
	noWWN = -1 // is no wwn that could be
)

// Who is switched off is not missed, neither while it is there nor when it is taken out, nor by a command without the config.
func TestVanishedOff(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", says("A1", noWWN, 0))
	m.disk("sdb", "naa.5000c50000000002", says("B2", noWWN, 0))
	m.disk("sdc", "", says("C3", noWWN, 0))
	m.round("all", "sda ok, sdb ok, sdc ok")
	on := m.options.Disks
	m.options.Disks = []smart.Disk{{Device: "/dev/sdb", Off: true}}
	m.round("sdb is off", "sda ok, sdc ok")
	m.pull("sdb")
	m.round("sdb is off and taken out", "sda ok, sdc ok")
	m.options.Disks = on
	m.round("sdb was off when it was taken out", "sda ok, sdc ok")
	m.disk("sdb", "naa.5000c50000000002", says("B2", noWWN, 0))
	m.round("sdb is on again", "sda ok, sdb ok, sdc ok")
	m.pull("sdb")
	m.round("sdb is taken out while it is on", "sdb vanished, sda ok, sdc ok")
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Off: true}, {Device: "/dev/sdb", Off: true}, {Device: "/dev/sdc", Off: true}}
	m.round("all are off", "")
}

// Another disk has taken the name of one that is off now: the config means the one that is there.
func TestVanishedBeforeOff(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", says("A1", noWWN, 0))
	m.round("A1", "sda ok")
	m.disk("sda", "naa.5000c50000000002", says("B2", noWWN, 0))
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Off: true}}
	m.round("B2 is off", "sda vanished")
}

// A list that cannot be read misses nobody, and those that were missed before stay so.
func TestVanishedUnlisted(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "naa.5000c50000000001", says("A1", noWWN, 3))
	m.disk("sdb", "naa.5000c50000000002", says("B2", noWWN, 0))
	m.disk("sdc", "naa.5000c50000000003", says("C3", noWWN, 0))
	m.options.Disks = []smart.Disk{{Device: "/dev/null"}, {Device: "/dev/sdb", Type: "sat"}, {Device: "/dev/sdz", Off: true}}
	m.round("all", "sda degraded, null unread, sdb ok, sdc ok")
	m.pull("sdc")
	m.round("without sdc", "sdc vanished, sda degraded, null unread, sdb ok")
	m.list(false)
	m.round("no list", "sdc vanished, null unread, sdb ok")
	m.list(true)
	m.round("a list", "sdc vanished, sda degraded, null unread, sdb ok")
}

// A disk that the config names is missed like any other, and not told beside that as one that could not be read.
func TestVanishedNamed(t *testing.T) {
	m := newMachine(t)
	m.options.Disks = []smart.Disk{{Device: "/dev/sdb", Type: "sat"}, {Device: "/dev/sdy"}}
	m.disk("sda", "naa.5000c50000000001", says("A1", noWWN, 0))
	m.disk("sdb", "", says("B2", noWWN, 0))
	m.round("all", "sdy unread, sda ok, sdb ok")
	m.pull("sdb")
	all := m.round("sdb is taken out", "sdb vanished, sdy unread, sda ok")
	m.round("again", "sdb vanished, sdy unread, sda ok")
	if !strings.Contains(all[0].Finding, "serial B2") || !strings.Contains(all[0].Finding, "at 12:10") {
		t.Errorf("%q", all[0].Finding)
	}
	m.book.boot = "later"
	m.round("after a start of the machine", "sdb vanished, sdy unread, sda ok")
	m.disk("sdb", "", says("D4", noWWN, 0))
	m.round("another one is in its place", "sdb vanished, sdy unread, sda ok, sdb ok")
	m.disk("sdb", "", says("B2", noWWN, 0))
	m.round("it is back, and the other gone", "sdb vanished, sdy unread, sda ok, sdb ok")
}

// Disks behind a controller are known by the config alone: what it does not name any more is not missed. One that is
// replaced is.
func TestVanishedBehind(t *testing.T) {
	m := newMachine(t)
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Type: "megaraid,0"}}
	m.disk("sda", "naa.6000000000000001", says("A1", 1, 0))
	m.round("A1", "sda (megaraid,0) ok")
	m.disk("sda", "naa.6000000000000001", says("B2", 2, 0))
	m.round("B2 in its place", "sda (megaraid,0) vanished, sda (megaraid,0) ok")
	m.options.Disks = nil
	m.disk("sda", "naa.6000000000000001", `{"json_format_version": [1, 0], "model_name": "PERC H730", "serial_number": "9"}`)
	m.round("not named", "sda unread")
}

// What is listed has not vanished, whoever is asked, nor has what nobody looks for any more.
func TestVanishedUnasked(t *testing.T) {
	b := book(t, "", "boot")
	behind := disk("bus/0", nil)
	behind.Type = "megaraid,0"
	generic := disk("sg3", nil)
	b.Round([]sample.Drive{disk("sda", nil), disk("sdb", nil), behind, generic}, noon)
	for _, c := range []struct {
		there map[string]string
		want  string
	}{
		{map[string]string{"sda": "", "sdb": ""}, ""},
		{map[string]string{"sda": "naa.sda", "sdb": ""}, ""},
		{map[string]string{"sdq": "naa.sda", "sdb": ""}, ""},
		{map[string]string{"sda": "naa.sdz", "sdb": ""}, "sda"},
		{map[string]string{"sdb": ""}, "sda"},
	} {
		got := ""
		for _, d := range b.Look(nil, Listing{All: true, There: c.there}, noon.Add(time.Hour)) {
			got += d.Device
		}
		if got != c.want {
			t.Errorf("%v: vanished %q, want %q", c.there, got, c.want)
		}
	}
}

// A drive that has two records, as of an earlier version's file, is there by both.
func TestTwoRecords(t *testing.T) {
	d, other := disk("sda", nil), disk("sda", nil)
	other.ID = smart.Named(d.Model, d.Serial)
	b := Open("", "boot", func(err error) { t.Error(err) })
	b.known = map[string]*Record{d.ID: {Drive: d, Seen: noon, Boot: "boot"}, other.ID: {Drive: other, Seen: noon, Boot: "boot"}}
	d.Device = "sdq"
	if all := b.Round([]sample.Drive{d}, noon.Add(time.Hour)); len(all) != 1 || all[0].ID != "naa.sda" {
		t.Errorf("%+v", all)
	}
}

// A drive whose identifier changes is the same drive, with its history, under the one that is sure.
func TestIdentifierChanges(t *testing.T) {
	m := newMachine(t)
	id := func(all []sample.Drive, want string) {
		t.Helper()
		if len(all) == 0 || all[0].ID != want {
			t.Errorf("%+v, want %s", all, want)
		}
	}
	m.disk("sda", "", says("A1", noWWN, 3))
	id(m.round("without a wwn", "sda degraded"), "Example_Disk_A1")
	m.disk("sda", "", says("A1", 77, 4))
	id(m.round("with one", "sda predicted_failure"), "naa.5000c5000000004d")
	m.disk("sda", "", says("A1", noWWN, 5))
	id(m.round("without it", "sda predicted_failure"), "naa.5000c5000000004d")
	m.disk("sda", "naa.5000c500000000ff", says("A1", noWWN, 5))
	id(m.round("with the kernel's", "sda predicted_failure"), "naa.5000c500000000ff")
	m.disk("sdq", "", says("A1", noWWN, 5))
	m.pull("sda")
	id(m.round("under another name", "sdq predicted_failure"), "naa.5000c500000000ff")
	m.disk("sdq", "", `{"json_format_version": [1, 0], "device": {"protocol": "ATA"}, "smart_status": {"passed": true}}`)
	id(m.round("without a name", "sdq ok"), "naa.5000c500000000ff")
	if len(m.book.known) != 1 {
		t.Errorf("%d records of one drive", len(m.book.known))
	}
}

// One that sleeps just as its type is named for the first time has not vanished: what it told last is known.
func TestTypeIsNamed(t *testing.T) {
	m := newMachine(t)
	m.disk("sda", "", says("A1", noWWN, 3))
	m.round("awake", "sda degraded")
	m.options.Disks = []smart.Disk{{Device: "/dev/sda", Type: "sat"}}
	m.disk("sda", "", sleeps)
	m.round("it sleeps", "sda degraded")
	m.book.boot = "later"
	m.options.Disks = nil
	m.round("after a start of the machine", "sda standby")
	m.disk("sda", "", says("A1", 5, 4))
	m.round("awake", "sda predicted_failure")
}

// Two parts of one drive, with identifiers of their own, are not taken for each other.
func TestNamespaces(t *testing.T) {
	m := newMachine(t)
	m.disk("nvme0n1", "eui.0000000000000001", says("N1", noWWN, 0))
	m.round("one", "nvme0n1 ok")
	m.disk("nvme0n2", "eui.0000000000000002", says("N1", noWWN, 0))
	m.round("two", "nvme0n1 ok, nvme0n2 ok")
	m.pull("nvme0n1")
	m.round("the second", "nvme0n1 vanished, nvme0n2 ok")
	m.disk("nvme0n2", "eui.0000000000000009", says("N1", noWWN, 0))
	m.round("made anew", "nvme0n1 vanished, nvme0n2 ok")
}

// Cheap drives may have one WWN: each has a history of its own, and is missed.
func TestSharedIdentifier(t *testing.T) {
	for _, wwid := range []string{"naa.5000000000000000", "naa.5000000000000001"} {
		m := newMachine(t)
		m.disk("sda", wwid, says("A1", noWWN, 0))
		m.disk("sdb", wwid, says("B2", noWWN, 12))
		for range 3 {
			all := m.round(wwid, "sdb degraded, sda ok")
			if all[0].ID != "Example_Disk_B2" || all[1].ID != "Example_Disk_A1" {
				t.Errorf("%s: %s, %s", wwid, all[0].ID, all[1].ID)
			}
		}
		m.disk("sdb", wwid, sleeps)
		m.round("sdb sleeps", "sdb degraded, sda ok")
		m.round("and sleeps", "sdb degraded, sda ok")
		m.pull("sdb")
		m.round("sdb is taken out", "sdb vanished, sda ok")
		m.disk("sda", wwid, says("B2", noWWN, 13))
		m.round("sdb took the name of the other", "sda vanished, sda predicted_failure")
	}
	// The second one comes when the first has gone.
	m := newMachine(t)
	m.disk("sda", "naa.5000000000000001", says("A1", noWWN, 0))
	m.round("A1", "sda ok")
	m.disk("sda", "naa.5000000000000001", says("B2", noWWN, 12))
	m.round("B2", "sda vanished, sda degraded")
	asked := []sample.Drive{{ID: "naa.11", Device: "sda", Serial: "1", Model: "M"}, {ID: "naa.11", Device: "sdb", Serial: "2", Model: "M"}}
	var none *Book
	if all := none.Take(asked, Listing{}, noon); all[0].ID != "M_1" || all[1].ID != "M_2" || asked[0].ID != "naa.11" {
		t.Errorf("%+v", all)
	}
}

// What had a device's name before is forgotten by it, and what has it now is not.
func TestForgetName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	b := book(t, path, "boot")
	a, z := disk("sda", nil), disk("sdz", nil)
	b.Round([]sample.Drive{a}, noon)
	z.Device = "sda"
	b.Round([]sample.Drive{z}, noon.Add(time.Hour))
	gone, err := Forget(path, "sda")
	if err != nil || len(gone) != 1 || gone[0].Serial != "Ssda" {
		t.Errorf("%+v, %v", gone, err)
	}
	if all := b.Round([]sample.Drive{z}, noon.Add(2*time.Hour)); len(all) != 1 || len(b.known) != 1 {
		t.Errorf("%+v", all)
	}
	other := disk("sdy", nil)
	z.Device, z.Type, other.Device, other.Type = "sda", "megaraid,0", "sda", "megaraid,1"
	b.Round([]sample.Drive{z, other}, noon.Add(3*time.Hour))
	if gone, err := Forget(path, "/dev/sda"); err == nil || !strings.Contains(err.Error(), "2 drives are at /dev/sda now") || len(gone) != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
	if gone, err := Forget(path, "Ssdy"); err != nil || len(gone) != 1 || gone[0].ID != "naa.sdy" {
		t.Errorf("%+v, %v", gone, err)
	}
	if gone, err := Forget(path, "sda"); err != nil || len(gone) != 1 || gone[0].ID != "naa.sdz" {
		t.Errorf("%+v, %v", gone, err)
	}
}
