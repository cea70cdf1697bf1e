package sampling

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// The kind of a disk is read once while the disk is present, and again after the name was free.
func TestDiskKinds(t *testing.T) {
	var k diskKinds
	kind, reads := disk.SSD, 0
	read := func(...string) string { reads++; return kind }
	both, one := []sample.Disk{{Name: "sda"}, {Name: "sdb"}}, []sample.Disk{{Name: "sdb"}}
	of := func(name, want string, wantReads int) {
		t.Helper()
		if got := k.of(name, read); got != want || reads != wantReads {
			t.Errorf("%s: got %s after %d reads, want %s after %d", name, got, reads, want, wantReads)
		}
	}
	of("sda", disk.SSD, 1)
	of("sda", disk.SSD, 1)
	kind = disk.Rotational
	k.retain(both)
	of("sda", disk.SSD, 1)
	k.retain(one)
	of("sda", disk.Rotational, 2)
	kind = disk.NoKind
	of("sdb", disk.NoKind, 3)
	kind = disk.Virtual
	of("sdb", disk.Virtual, 4)
	of("gone", disk.Virtual, 5)
	k.retain(both)
	of("gone", disk.Virtual, 6)
	k.retain(both)
	if len(k.known) != len(both) {
		t.Errorf("got the kinds %v, want those of %d disks", k.known, len(both))
	}
}
