package mount

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestKindAndName(t *testing.T) {
	tests := []struct{ fsType, kind, name string }{
		{"ext4", Block, "ext4"},
		{"btrfs", Block, "btrfs"},
		{"zfs", Block, "zfs"},
		{"fuseblk", Block, "FUSE"},
		{"never heard of", Block, "never heard of"},
		{"tmpfs", Memory, "tmpfs (memory)"},
		{"devtmpfs", Memory, "devtmpfs (memory)"},
		{"nfs", Network, "NFS"},
		{"nfs4", Network, "NFS"},
		{"ceph", Network, "Ceph"},
		{"lustre", Network, "Lustre"},
		{"9p", Network, "9P"},
		{"virtiofs", Network, "virtiofs"},
		{"cifs", Network, "SMB"},
		{"fuse", Fuse, "FUSE"},
		{"fuse.sshfs", Fuse, "FUSE (sshfs)"},
		{"fuse.lxcfs", Virtual, "FUSE (lxcfs)"},
		{"fusectl", Virtual, "fusectl"},
		{"overlay", Overlay, "overlay"},
		{"proc", Virtual, "proc"},
		{"cgroup2", Virtual, "cgroup2"},
	}
	for _, test := range tests {
		if got := Kind(test.fsType); got != test.kind {
			t.Errorf("Kind(%q) = %q, want %q", test.fsType, got, test.kind)
		}
		if got := Name(test.fsType); got != test.name {
			t.Errorf("Name(%q) = %q, want %q", test.fsType, got, test.name)
		}
	}
}

func TestHasBlockDevice(t *testing.T) {
	tests := []struct {
		mount sample.Mount
		want  bool
	}{
		{sample.Mount{Type: "ext4", Source: "/dev/vda", Major: 254}, true},
		{sample.Mount{Type: "btrfs", Source: "/dev/nvme0n1p2", Minor: 31}, true},
		{sample.Mount{Type: "zfs", Source: "tank/data", Minor: 44}, false},
		{sample.Mount{Type: "new", Source: "/dev/sdb", Major: 8}, true},
		{sample.Mount{Type: "fuseblk", Source: "/dev/sdb1", Major: 8, Minor: 17}, true},
		{sample.Mount{Type: "tmpfs", Source: "/dev/shm", Minor: 23}, false},
		{sample.Mount{Type: "nfs4", Source: "srv:/", Minor: 50}, false},
		{sample.Mount{Type: "fuse.sshfs", Source: "/dev/fuse", Minor: 51}, false},
		{sample.Mount{Type: "overlay", Source: "overlay", Minor: 52}, false},
	}
	for _, test := range tests {
		if got := HasBlockDevice(test.mount); got != test.want {
			t.Errorf("HasBlockDevice(%+v) = %v, want %v", test.mount, got, test.want)
		}
	}
}
