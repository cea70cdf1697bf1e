package trust

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// secureMode is the key AT_SECURE of the auxiliary vector (linux/auxvec.h).
const secureMode = 23

// rights are those of this process when it was started, with those of the user who started it.
type rights struct {
	uid, euid, gid, egid int
	permitted, ambient   uint64 // sets of capabilities, a bit for each
	secure               bool   // the kernel reports that the process has more rights than its caller (AT_SECURE)
}

// elevated reports whether the program's file gave rights that its user lacks. A service manager gives ambient
// capabilities, which its child would have in any program. AT_SECURE alone may be a domain of SELinux or AppArmor.
func (r rights) elevated() bool {
	return r.uid != r.euid || r.gid != r.egid || r.euid != 0 && r.permitted&^r.ambient != 0
}

// privileged reports whether the process has more rights than other processes of its user.
func (r rights) privileged() bool {
	return r.elevated() || r.secure || r.euid != 0 && r.permitted != 0
}

// current is read once: rights do not grow.
var current = sync.OnceValue(func() rights {
	r := rights{uid: os.Getuid(), euid: os.Geteuid(), gid: os.Getgid(), egid: os.Getegid()}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) == nil {
		r.permitted = uint64(sets[1].Permitted)<<32 | uint64(sets[0].Permitted)
	}
	for c := range uintptr(64) {
		if set, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0); err == nil && set == 1 {
			r.ambient |= 1 << c
		}
	}
	if vector, err := unix.Auxv(); err == nil {
		for _, entry := range vector {
			r.secure = r.secure || entry[0] == secureMode && entry[1] != 0
		}
	}
	return r
})

// Elevated reports whether the program's file, by a setuid or setgid bit or by file capabilities, gave this process
// rights that its user lacks. The user then chooses what it does with them: arguments, environment, files.
func Elevated() bool { return current().elevated() }

// Granted returns the capabilities that a service manager or a container's runtime gave this program to choose from.
// Root has none if it has others than Machine: what it kept would be worth as much as what it gave up.
func Granted() Set {
	switch r := current(); {
	case r.elevated(), r.euid == 0 && Set(r.permitted)&^Machine != 0:
		return None
	case r.euid == 0:
		return Set(r.permitted)
	default:
		return Set(r.ambient)
	}
}

// Permitted returns the capabilities that this process was started with.
func Permitted() Set { return Set(current().permitted) }

// Privileged reports whether this process has more rights than others of its user: it is Elevated, or has
// capabilities without being root. Its user's files must not decide what it loads or runs.
func Privileged() bool { return current().privileged() }

// MayTrace reports whether this process may read all that the kernel shows of others' processes (ptrace(2)): now, as
// it may have given that up.
func MayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&header, &sets[0]) == nil && Set(sets[0].Effective)&sysPtrace != 0
}
