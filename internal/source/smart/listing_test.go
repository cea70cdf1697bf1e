package smart

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestListing(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"sda", "sdb", "sdc", "vda"} {
		f.disk(name, "{}", "")
	}
	fixture.Write(t, f.root, "sys/class/block/sda/device/wwid", []byte("naa.5000C50000000001\n"))
	fixture.Write(t, f.root, "sys/class/block/sdc/removable", []byte("1\n"))
	fixture.Write(t, f.root, "sys/class/block/sdc/size", []byte("0\n"))
	fixture.Write(t, f.root, "sys/class/scsi_generic/sg1/dev", []byte("21:1\n"))
	o := f.options()
	o.Disks = []Disk{
		{Device: "/dev/sdb", Off: true}, {Device: "/dev/sda", Type: "megaraid,1", Off: true}, {Device: "/dev/sdc", Type: "sat"},
		{Device: "/dev/sdz"}, {Device: "/dev/sg1"}, {Device: "/dev/sg2"}, {Device: "/dev/bus/0", Type: "megaraid,0"},
	}
	l := o.Listing()
	present := map[string]string{"sda": "naa.5000c50000000001", "sdb": "", "sg1": "", "bus/0": ""}
	missing := map[string]bool{"sdc": true, "sdz": true, "sg2": true}
	off := map[Place]bool{{"sdb", ""}: true, {"sda", "megaraid,1"}: true}
	if !l.Complete || l.Err != nil || !maps.Equal(l.Present, present) ||
		!maps.Equal(l.Missing, missing) || !maps.Equal(l.Off, off) {
		t.Errorf("got %+v, want present %v, missing %v, off %v", l, present, missing, off)
	}
	for name, want := range map[string]bool{
		"sda": false, "sdb": false, "sdc": true, "sdd": true, "sdz": true,
		"sg1": false, "sg2": true, "bus/0": false, "bus/1": false,
	} {
		if got := l.Gone(name); got != want {
			t.Errorf("Gone(%s): got %v, want %v", name, got, want)
		}
	}
	o.Only = true
	if l := o.Listing(); l.Complete || l.Gone("sdz") || l.Present != nil {
		t.Errorf("Only: got %+v, want the zero value", l)
	}
}

// A list that cannot be read is an error, also with configured disks, and no disk is missing.
func TestListingUnreadable(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "ata-wdc-red")), "")
	if err := os.Rename(filepath.Join(f.root, "sys/class/block"), filepath.Join(f.root, "sys/class/other")); err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.Disks = []Disk{{Device: "/dev/sda", Type: "sat"}, {Device: "/dev/null"}}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	drives, err := s.Round(t.Context())
	if len(drives) != 2 || err == nil || !strings.Contains(err.Error(), "cannot be listed") {
		t.Errorf("got %d drives, %v, want one and an error", len(drives), err)
	}
	if l := o.Listing(); l.Complete || l.Err == nil || l.Gone("sdb") || l.Gone("null") {
		t.Errorf("got %+v, want an incomplete listing with an error", l)
	}
	o.Only = true
	if s, err = New(o); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Round(t.Context()); err != nil && strings.Contains(err.Error(), "listed") {
		t.Errorf("Only: got error %v, want none about the list", err)
	}
}

// An ID of zeros is not unique.
func TestUnique(t *testing.T) {
	for id, want := range map[string]bool{
		"naa.5000c50000000001": true, "naa.5000000000000000": false, "naa.0000000000000001": true, "naa.": false, "naa.5": false,
		"naa.60000000000000000000000000000000": false, "eui.0025385b71b0a3c1": true, "eui.0000000000000000": false,
		"uuid.00000000-0000-0000-0000-000000000000": false, "uuid.8b1a3b1a-0000-0000-0000-000000000000": true,
		"Model_naa.5": false, "t10.ATA Model": false, "": false,
	} {
		if got := Unique(id); got != want {
			t.Errorf("Unique(%q): got %v, want %v", id, got, want)
		}
	}
	f := newFake(t)
	f.disk("sda", string(load(t, "ata-wdc-red")), "")
	fixture.Write(t, f.root, "sys/class/block/sda/device/wwid", []byte("naa.5000000000000000\n"))
	f.disk("sdb", `{"json_format_version": [1, 0], "device": {"protocol": "SCSI"}, "scsi_model_name": "Example Disk", "serial_number": "1",
		"logical_unit_id": "0x5000000000000000", "smart_status": {"passed": true}, "scsi_grown_defect_list": 0}`, "")
	all := f.round(f.options())
	if d := all["sda"]; d.ID != "naa.50014ee0499602d2" {
		t.Errorf("sda: got ID %q, want another", d.ID)
	}
	if d := all["sdb"]; d.ID != "Example_Disk_1" {
		t.Errorf("sdb: got ID %q, want another", d.ID)
	}
}
