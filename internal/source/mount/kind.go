package mount

import (
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The kinds that Kind tells apart.
const (
	Block   = "block"   // its data lie on a block device of this machine
	Memory  = "memory"  // its data lie in memory and are gone after a reboot
	Network = "network" // another machine, or the host of this virtual one, serves it
	Fuse    = "fuse"    // a program serves it, from wherever it likes
	Overlay = "overlay" // a view of directories in other file systems
	Virtual = "virtual" // no data: the kernel talks through it
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

// kindTable turns kind -> types into type -> kind.
func kindTable(types map[string]string) map[string]string {
	table := make(map[string]string)
	for kind, list := range types {
		for fsType := range strings.FieldsSeq(list) {
			table[fsType] = kind
		}
	}
	return table
}

// Kind says what kind of storage a file system type is. A type that is not known counts as Block, for what it
// lacks then shows at its device number: see HasBlockDevice.
func Kind(fsType string) string {
	if kind, known := kinds[fsType]; known {
		return kind
	}
	if strings.HasPrefix(fsType, "fuse.") {
		return Fuse
	}
	return Block // fuseblk too: a FUSE program that works on one block device, and its mounts carry that number
}

// HasBlockDevice tells whether a block device of this machine lies directly under m. Some file systems that span
// several devices (btrfs, bcachefs) have no device number of their own and name a device as their source instead.
func HasBlockDevice(m sample.Mount) bool {
	return m.Major != 0 || Kind(m.Type) == Block && strings.HasPrefix(m.Source, "/dev/")
}

// Name is what a person calls a file system type: "tmpfs (memory)", "NFS", "FUSE (sshfs)"; the type itself where
// there is nothing to add.
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
