package mount

import (
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The kinds of storage.
const (
	Block   = "block"   // data on a block device of this machine
	Memory  = "memory"  // data in memory
	Network = "network" // served by another machine, or by the host of this virtual machine
	Fuse    = "fuse"    // served by a program, with data anywhere
	Overlay = "overlay" // directories of other file systems
	Virtual = "virtual" // no data: an interface of the kernel
)

var kinds = kindTable(map[string]string{
	Memory: "tmpfs ramfs devtmpfs hugetlbfs rootfs shmem",
	Network: "nfs nfs4 cifs smb3 smbfs ceph lustre gpfs beegfs fhgfs wekafs panfs pvfs2 orangefs glusterfs afs coda " +
		"ncpfs 9p virtiofs vboxsf vmhgfs prl_fs davfs",
	Fuse:    "fuse",
	Overlay: "overlay overlayfs aufs unionfs ecryptfs",
	Virtual: "proc sysfs cgroup cgroup2 cpuset devpts debugfs tracefs securityfs selinuxfs smackfs pstore bpf configfs " +
		"mqueue autofs binfmt_misc fusectl fuse.lxcfs fuse.gvfsd-fuse fuse.portal rpc_pipefs nsfs nfsd efivarfs " +
		"resctrl sockfs pipefs anon_inodefs bdev dax functionfs binder xenfs openpromfs",
})

// kindTable inverts kind -> types to type -> kind.
func kindTable(types map[string]string) map[string]string {
	table := make(map[string]string)
	for kind, list := range types {
		for fsType := range strings.FieldsSeq(list) {
			table[fsType] = kind
		}
	}
	return table
}

// Kind returns the kind of storage of a file system type. An unknown type counts as Block; HasBlockDevice checks its
// device number.
func Kind(fsType string) string {
	if kind, known := kinds[fsType]; known {
		return kind
	}
	if strings.HasPrefix(fsType, "fuse.") {
		return Fuse
	}
	return Block // includes fuseblk: a FUSE program on one block device, with the number of that device
}

// HasBlockDevice reports whether m is directly on a block device of this machine. File systems on several devices
// (btrfs, bcachefs) have no device number, and a device as their source.
func HasBlockDevice(m sample.Mount) bool {
	return m.Major != 0 || Kind(m.Type) == Block && strings.HasPrefix(m.Source, "/dev/")
}

// Name returns the usual name of a file system type, such as "tmpfs (memory)", "NFS" or "FUSE (sshfs)".
func Name(fsType string) string {
	if program, isFuse := strings.CutPrefix(fsType, "fuse."); isFuse {
		return "FUSE (" + program + ")"
	}
	switch fsType {
	case "nfs", "nfs4":
		return "NFS"
	case "ceph":
		return "Ceph"
	case "cifs", "smb3", "smbfs":
		return "SMB"
	case "lustre":
		return "Lustre"
	case "gpfs":
		return "GPFS"
	case "beegfs", "fhgfs":
		return "BeeGFS"
	case "wekafs":
		return "WEKA"
	case "9p":
		return "9P"
	case "fuse", "fuseblk":
		return "FUSE"
	}
	if Kind(fsType) == Memory {
		return fsType + " (memory)"
	}
	return fsType
}
