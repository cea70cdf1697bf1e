package window

import (
	"slices"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// No process can have fetched more from disks than these read, except from a network.
func TestReadersAboveTheDisksBytes(t *testing.T) {
	all := []Reader{{PID: 1, Bytes: 500}, {PID: 2, Bytes: 110}, {PID: 3, Bytes: 5}}
	b := &builder{Report: &Report{Disks: []DiskUse{{ReadBytes: 60}, {ReadBytes: 40}}},
		machine: &Machine{Leaves: []string{"sda"}, Readers: all}}
	if got := b.readers(); !slices.Equal(got, all[1:]) {
		t.Errorf("%v, want %v", got, all[1:])
	}
	b.Mounts = []sample.Mount{{Point: "/nfs"}}
	if got := b.readers(); !slices.Equal(got, all) {
		t.Errorf("with a network file system: %v, want %v", got, all)
	}
	b.Mounts, b.machine.Leaves = nil, nil
	if got := b.readers(); !slices.Equal(got, all) {
		t.Errorf("without a disk: %v, want %v", got, all)
	}
}
