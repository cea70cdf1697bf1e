package slowdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/mount"
)

// The folders of a Disk below its base. Each may be a mount. They are removed in this order, and the loop device after
// the first.
const (
	diskFolder    = "disk"    // the file system for the caller
	serverFolder  = "server"  // the server's mount
	backingFolder = "backing" // the backing files

	deviceFile = "device" // of a loop device, in serverFolder and backingFolder
)

// patience is how long a mount may still be in use before it is detached anyway. Programs that inspect new devices
// finish within milliseconds; one in a mount namespace of its own, as tests start them, keeps its copy of the mount
// until it ends.
const patience = 30 * time.Second

// undo removes everything of a Disk by name, whichever process made it. After wait, mounts in use are detached and end
// with their last user; the error lists them.
func undo(base string, wait time.Duration) error {
	var problems []error
	deadline := time.Now().Add(wait)
	problems = append(problems, unmount(filepath.Join(base, diskFolder), deadline))
	if name := loopOn(filepath.Join(base, serverFolder, deviceFile)); name != "" {
		problems = append(problems, detach(name, deadline))
	}
	problems = append(problems, unmount(filepath.Join(base, serverFolder), deadline))
	problems = append(problems, unmount(filepath.Join(base, backingFolder), deadline))
	left, err := mountsBelow(base)
	if err != nil || len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%s is left as it is: mounted there are %v", base, left))
	} else {
		err = os.RemoveAll(base)
	}
	return errors.Join(append(problems, err)...)
}

// unmount removes a mount; a missing mount is no error.
func unmount(point string, deadline time.Time) error {
	for {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil, errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY):
			return &os.PathError{Op: "unmount", Path: point, Err: err}
		case time.Now().After(deadline):
			if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return &os.PathError{Op: "unmount", Path: point, Err: err}
			}
			return fmt.Errorf("%s is still in use: it ends with the last file that is open there", point)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// mountsBelow lists the mount points below a folder.
func mountsBelow(folder string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	mounts, err := mount.Parse(file)
	var points []string
	for _, m := range mounts {
		if strings.HasPrefix(m.Point, folder+"/") {
			points = append(points, m.Point)
		}
	}
	return points, err
}
