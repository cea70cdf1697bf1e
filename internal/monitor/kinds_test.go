package monitor

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// The kind of a disk is read once while it is there, and again when its name is another one's.
func TestKinds(t *testing.T) {
	var k kinds
	is, reads := disk.SSD, 0
	read := func(...string) string { reads++; return is }
	both, one := []sample.Disk{{Name: "sda"}, {Name: "sdb"}}, []sample.Disk{{Name: "sdb"}}
	of := func(name, want string, wantReads int) {
		t.Helper()
		if got := k.of(name, both, read); got != want || reads != wantReads {
			t.Errorf("%s: %s after %d reads, want %s after %d", name, got, reads, want, wantReads)
		}
	}
	of("sda", disk.SSD, 1)
	of("sda", disk.SSD, 1)
	is = disk.Rotational
	k.keep(both)
	of("sda", disk.SSD, 1)
	k.keep(one)
	of("sda", disk.Rotational, 2)
	is = disk.NoKind
	of("sdb", disk.NoKind, 3)
	is = disk.Virtual
	of("sdb", disk.Virtual, 4)
	of("gone", disk.Virtual, 5)
	of("gone", disk.Virtual, 6)
	if len(k) != len(both) {
		t.Errorf("%v", k)
	}
}
