package slowdisk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// limit is a limit of the cgroup v1 controller blkio on one device for the group of this process
// (Documentation/admin-guide/cgroup-v1/blkio-controller.rst). The kernel delays requests before the device counts them.
type limit struct {
	group  string // the group's folder
	device string // "7:3"
}

// newLimit finds the group of this process.
func newLimit(device string) (limit, error) {
	group, err := ownGroup()
	if err != nil {
		return limit{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/dev/"+device, &st); err != nil {
		return limit{}, &os.PathError{Op: "stat", Path: "/dev/" + device, Err: err}
	}
	return limit{group, fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))}, nil
}

// ownGroup returns the folder of this process's group of the controller blkio.
func ownGroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] != "cgroup" || !strings.Contains(","+fields[3]+",", ",blkio,") {
			continue
		}
		groups, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return "", err
		}
		for group := range strings.Lines(string(groups)) {
			parts := strings.SplitN(strings.TrimSpace(group), ":", 3)
			if len(parts) == 3 && strings.Contains(","+parts[1]+",", ",blkio,") {
				return filepath.Join(fields[1], parts[2]), nil
			}
		}
	}
	return "", fmt.Errorf("throttled storage needs the blkio controller of cgroup v1, which is not mounted here")
}

// set limits reads and writes separately; 0 is no limit.
func (l limit) set(iops int, bytesPerSecond int64) error {
	for _, direction := range []string{"read", "write"} {
		for unit, value := range map[string]int64{"iops": int64(iops), "bps": bytesPerSecond} {
			file := filepath.Join(l.group, "blkio.throttle."+direction+"_"+unit+"_device")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%s %d", l.device, value), 0o644); err != nil {
				return fmt.Errorf("a limit cannot be set: %w; was the kernel built with CONFIG_BLK_DEV_THROTTLING?", err)
			}
		}
	}
	return nil
}

// unlimit removes all limits of a device.
func unlimit(device string) {
	if l, err := newLimit(device); err == nil {
		_ = l.set(0, 0)
	}
}
