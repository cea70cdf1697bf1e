package mount

import (
	"cmp"
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

// names are the usual names of file system types.
var names = map[string]string{
	"nfs": "NFS", "nfs4": "NFS", "ceph": "Ceph", "cifs": "SMB", "smb3": "SMB", "smbfs": "SMB", "lustre": "Lustre",
	"gpfs": "GPFS", "beegfs": "BeeGFS", "fhgfs": "BeeGFS", "wekafs": "WEKA", "9p": "9P", "fuse": "FUSE", "fuseblk": "FUSE",
}

// Name returns the usual name of a file system type, such as "tmpfs (memory)", "NFS" or "FUSE (sshfs)".
func Name(fsType string) string {
	if program, isFuse := strings.CutPrefix(fsType, "fuse."); isFuse {
		return "FUSE (" + program + ")"
	}
	if Kind(fsType) == Memory {
		return fsType + " (memory)"
	}
	return cmp.Or(names[fsType], fsType)
}

// maxLayers bounds Layers. The limit of the kernel is 500.
const maxLayers = 512

// Layers returns the directories of an overlay, the writable one first: its options upperdir and lowerdir, and on newer
// kernels one lowerdir+ or datadir+ for each layer. They are paths of the process that mounted it, which may be outside
// this container, or relative to its working directory. Other file systems have none.
func (e *Entry) Layers() []string {
	var upper, lower []string
	switch e.Type {
	case "overlay", "overlayfs":
	case "ecryptfs":
		return []string{e.Source}
	default:
		return nil
	}
	for option := range strings.SplitSeq(e.options, ",") {
		name, value, _ := strings.Cut(option, "=")
		value = Unescape(value)
		switch {
		case value == "" || len(upper)+len(lower) >= maxLayers:
		case name == "upperdir":
			upper = append(upper, value)
		case name == "lowerdir+" || name == "datadir+":
			lower = append(lower, value)
		case name == "lowerdir":
			lower = append(lower, splitLayers(value, maxLayers-len(lower)-len(upper))...)
		}
	}
	return append(upper, lower...)
}

// Upper returns the writable layer of an overlay; "" if it has none, or is no overlay.
func (e *Entry) Upper() string {
	if e.Type != "overlay" {
		return ""
	}
	return Unescape(e.Option("upperdir"))
}

// splitLayers splits at colons without a backslash. Two colons precede data-only layers.
func splitLayers(list string, limit int) []string {
	var layers []string
	var layer strings.Builder
	for i := 0; i <= len(list) && len(layers) < limit; i++ {
		switch {
		case i == len(list) || list[i] == ':':
			if layer.Len() > 0 {
				layers = append(layers, layer.String())
			}
			layer.Reset()
		case list[i] == '\\' && i+1 < len(list):
			i++
			layer.WriteByte(list[i])
		default:
			layer.WriteByte(list[i])
		}
	}
	return layers
}
