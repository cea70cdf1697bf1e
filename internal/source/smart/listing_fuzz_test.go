package smart

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stallspan/stallspan/test/fixture"
)

// Whatever the kernel or a disk's firmware says in /sys, the listed disk is one below /dev, its ID is short and can be
// printed, and reading it asks for that disk.
func FuzzListing(f *testing.F) {
	f.Add("sda", "naa.5000c500a1b2c3d4\n", "ATA     ", "0", "0", "1000", "active", "0")
	f.Add("sdb", "t10.ATA \x1b]0;x\x07\n", "QEMU", "5", "1", "0", "suspended", "1")
	f.Add("nvme0n1", "eui."+strings.Repeat("ab", 5000), "", "", "", "", "", "")
	f.Add("..", "\xff\xfe", "\x00", "-1", "2", "99999999999999999999", "\n", "x")
	f.Fuzz(func(t *testing.T, name, wwid, vendor, kind, removable, size, status, hidden string) {
		if name == "" || name == "." || name == ".." || len(name) > 64 || strings.ContainsAny(name, "/\x00") {
			name = "sda"
		}
		root := t.TempDir()
		for file, text := range map[string]string{"wwid": wwid, "device/vendor": vendor, "device/type": kind,
			"removable": removable, "size": size, "device/power/runtime_status": status, "hidden": hidden} {
			fixture.Write(t, root, "sys/class/block/"+name+"/"+file, []byte(text))
		}
		o := Options{Root: root, Disks: []Disk{{Device: "/dev/sdz", Type: "sat"}}}
		l := o.Listing()
		list, err := o.targets()
		if !l.Complete || l.Err != nil || err != nil {
			t.Errorf("got %v, %v, want a complete list", l.Err, err)
		}
		for device, id := range l.Present {
			control := strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
			if !disks.MatchString(device) || control || !utf8.ValidString(id) || len(id) > 64*utf8.UTFMax {
				t.Errorf("got %q with the ID %q, want a disk and a short ID that can be printed", device, id)
			}
		}
		for i := range list {
			arguments := list[i].arguments()
			if last := arguments[len(arguments)-1]; last != "/dev/"+list[i].name {
				t.Errorf("%q: got arguments %q, want that disk", list[i].name, arguments)
			}
		}
	})
}
