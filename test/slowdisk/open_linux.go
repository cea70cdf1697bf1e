package slowdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/disk"
)

func open(ctx context.Context, kind Kind, o Options) (*Disk, error) {
	if os.Getenv(guardVariable) != "" {
		return nil, errors.New("this process is a server of slow storage and opens none: main must call slowdisk.Serve first")
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%s storage needs root, which mounts it", kind)
	}
	parent, err := room(kind, o.Size)
	if err != nil {
		return nil, err
	}
	base, err := os.MkdirTemp(parent, "stallspan-storage-")
	if err != nil {
		return nil, err
	}
	d := &Disk{Kind: kind, Options: o, base: base}
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// room returns the parent folder for a Disk: memory if it has room, except for Local.
func room(kind Kind, size int64) (string, error) {
	if kind != Local {
		var st unix.Statfs_t
		err := unix.Statfs("/dev/shm", &st)
		if page := uint64(os.Getpagesize()); err == nil && uint32(st.Type) == unix.TMPFS_MAGIC &&
			st.Bavail > uint64(size)/page {
			return "/dev/shm", nil
		}
		return os.TempDir(), nil
	}
	for _, folder := range []string{os.TempDir(), "/var/tmp"} {
		var st unix.Statfs_t
		if err := unix.Statfs(folder, &st); err == nil && uint32(st.Type) != unix.TMPFS_MAGIC {
			return folder, nil
		}
	}
	return "", errors.New("no temporary folder lies on a disk: set TMPDIR to one that does")
}

func (d *Disk) build(ctx context.Context) error {
	for _, folder := range []string{"", diskFolder, serverFolder, backingFolder} {
		if err := os.MkdirAll(d.at(folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(d.base, 0o755); err != nil { // other users may look at the mount
		return err
	}
	var err error
	if d.guard, err = startGuard(d.base); err != nil {
		return err
	}
	if err := d.pace(false); err != nil {
		return fmt.Errorf("%w: does main call slowdisk.Serve first?", err)
	}
	d.Dir = d.at(diskFolder)
	switch d.Kind {
	case Local:
		d.Device = leafUnder(d.Dir)
		return nil
	case Memory:
		return d.memory(d.Dir)
	case Network:
		d.Dir = d.at(serverFolder)
		return d.network()
	}
	return d.block(ctx)
}

func (d *Disk) at(folder string) string { return filepath.Join(d.base, folder) }

// leafUnder returns the only disk under a folder, or "".
func leafUnder(folder string) string {
	source, err := disk.New("/")
	if err != nil {
		return ""
	}
	defer func() { _ = source.Close() }()
	if found, err := source.Under(folder); err == nil && len(found.Disks) == 1 {
		return found.Disks[0]
	}
	return ""
}

func (d *Disk) memory(point string) error {
	err := unix.Mount(
		"tmpfs",
		point,
		"tmpfs",
		unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("size=%d,mode=755", d.Options.Size),
	)
	if err != nil {
		return &os.PathError{Op: "mount a tmpfs", Path: point, Err: err}
	}
	return nil
}

// show makes the server show the backing folder.
func (d *Disk) show(uncached bool) error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("slow storage needs FUSE: %w; is the module fuse loaded?", err)
	}
	return d.guard.do(order{Mount: true, Backing: d.at(backingFolder), Point: d.at(serverFolder), Uncached: uncached})
}

func (d *Disk) network() error {
	if err := d.memory(d.at(backingFolder)); err != nil { // limits the size
		return err
	}
	if err := d.show(false); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(d.Dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: d.Dir, Err: err}
	}
	return write(
		fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(st.Dev), unix.Minor(st.Dev)),
		d.Options.ReadAhead/kib,
	)
}

// block makes a file system in a file, shows the file through the server, attaches a loop device and mounts it.
func (d *Disk) block(ctx context.Context) error {
	file := filepath.Join(d.at(backingFolder), deviceFile)
	if err := format(ctx, file, d.Options.Size); err != nil {
		return err
	}
	if err := d.show(true); err != nil {
		return err
	}
	device, err := attach(filepath.Join(d.at(serverFolder), deviceFile))
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }() // the mount has opened it
	d.Device = filepath.Base(device.Name())
	if err := tune(d.Device, d.Options.ReadAhead); err != nil {
		return err
	}
	if d.Kind == Throttled {
		if d.limit, err = newLimit(d.Device); err != nil {
			return err
		}
	}
	if err := unix.Mount(device.Name(), d.Dir, "ext4", unix.MS_NOATIME|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("%s cannot be mounted at %s: %w; does the kernel have ext4?", device.Name(), d.Dir, err)
	}
	return os.Remove(filepath.Join(d.Dir, "lost+found"))
}

// format makes an ext4 in a new file, fully initialised, so that the kernel writes nothing in the background later.
func format(ctx context.Context, file string, size int64) error {
	program := ""
	for _, name := range []string{"mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return errors.New("slow storage needs mkfs.ext4: install e2fsprogs")
	}
	made, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(made.Truncate(size), made.Close()); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, program, "-q", "-F", "-b", "4096", "-m", "0", "-i", "65536", "-J", "size=8",
		"-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.Join(strings.Fields(string(output)), " "))
	}
	return nil
}
