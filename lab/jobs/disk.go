//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// storage is where a job's data are. Slow makes them cold and the device slow.
type storage interface {
	slow() error
	close() error
}

// place is a mounted storage.
type place struct {
	storage
	dir    string
	device string // its counters are those of the job's reads; "" for none
	group  string // folder of the blkio cgroup that the job has to be in; "" for any
}

// Kinds of storage that slowdisk does not have.
const (
	stacked = "stacked" // a loop device on a loop device that is slow
	limited = "limited" // a loop device that a cgroup limits
	striped = "striped" // btrfs on two loop devices; the first is slow
)

// diskSpec is a kind with its limits; see slowdisk.Options for the kinds of slowdisk.
type diskSpec struct {
	Kind  string        `json:"kind"`
	IOPS  int           `json:"iops,omitempty"`
	Bytes int64         `json:"bytes_per_second,omitempty"`
	Delay time.Duration `json:"delay_ns,omitempty"` // of slowdisk.Network
}

func openDisk(ctx context.Context, spec diskSpec, folder string) (*place, error) {
	switch spec.Kind {
	case stacked, limited, striped:
		return openLoops(spec, folder)
	}
	o := slowdisk.Options{Size: diskSize}
	switch kind := slowdisk.Kind(spec.Kind); kind {
	case slowdisk.Throttled:
		o.IOPS, o.BytesPerSecond = spec.IOPS, spec.Bytes
	case slowdisk.SATA:
		o.BytesPerSecond = spec.Bytes
	case slowdisk.Network:
		o.Delay = spec.Delay
	}
	d, err := slowdisk.Open(ctx, slowdisk.Kind(spec.Kind), o)
	if err != nil {
		return nil, err
	}
	return &place{storage: served{d}, dir: d.Dir, device: d.Device}, errors.Join(
		os.Chmod(filepath.Dir(d.Dir), 0o755), os.Chmod(d.Dir, 0o777)) // a plain user's job reads there
}

// served is a disk of package slowdisk.
type served struct{ disk *slowdisk.Disk }

func (s served) slow() error  { return s.disk.Slow() }
func (s served) close() error { return s.disk.Close() }

const diskSize = 512 << 20

// loops is one loop device, or one on another.
type loops struct {
	spec   diskSpec
	folder string
	names  []string // "loop0", the lowest first
	group  string   // of limited, or that of this process
}

// openLoops builds the devices with the tools of the system, on a file in memory.
func openLoops(spec diskSpec, folder string) (*place, error) {
	l := &loops{spec: spec, folder: folder, group: blkio}
	p, err := l.open()
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return p, nil
}

func (l *loops) open() (*place, error) {
	dir := filepath.Join(l.folder, "disk")
	on, err := l.file("device")
	if err != nil {
		return nil, err
	}
	if on, err = l.attach(on); err != nil {
		return nil, err
	}
	format := []string{"mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"}
	switch l.spec.Kind {
	case stacked:
		on, err = l.attach(on)
	case striped:
		var second string
		if second, err = l.file("second"); err == nil {
			second, err = l.attach(second)
		}
		format = []string{"mkfs.btrfs", "-q", "-K", "-d", "raid0", "-m", "raid1", second}
	}
	if err != nil {
		return nil, err
	}
	if _, err := tool(format[0], append(format[1:], on)...); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := tool("mount", "-o", "noatime", on, dir); err != nil {
		return nil, err
	}
	p := &place{storage: l, dir: dir, device: filepath.Base(on)}
	if l.spec.Kind == limited {
		l.group = filepath.Join(blkio, filepath.Base(filepath.Dir(l.folder)))
		p.group = l.group
		if err := os.Mkdir(l.group, 0o755); err != nil {
			return nil, err
		}
	}
	return p, os.Chmod(dir, 0o777)
}

// file makes the file under a device.
func (l *loops) file(name string) (string, error) {
	path := filepath.Join(l.folder, name)
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(file.Truncate(diskSize), file.Close())
}

// attach makes a loop device on a file or device.
func (l *loops) attach(on string) (string, error) {
	device, err := tool("losetup", "--find", "--show", "--direct-io=on", on)
	if err == nil {
		l.names = append(l.names, filepath.Base(device))
	}
	return device, err
}

// blkio is the root of the controller of cgroup v1.
const blkio = "/sys/fs/cgroup/blkio"

// limit limits the lowest device; 0 is no limit.
func (l *loops) limit(iops int, bytes int64) error {
	number, err := os.ReadFile(filepath.Join("/sys/block", l.names[0], "dev"))
	if err != nil {
		return err
	}
	for _, direction := range []string{"read", "write"} {
		for unit, value := range map[string]int64{"iops": int64(iops), "bps": bytes} {
			file := filepath.Join(l.group, "blkio.throttle."+direction+"_"+unit+"_device")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%s %d", strings.TrimSpace(string(number)), value), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loops) slow() error {
	if err := l.limit(0, 0); err != nil {
		return err
	}
	if err := slowdisk.Cold(filepath.Join(l.folder, "disk")); err != nil {
		return err
	}
	return l.limit(l.spec.IOPS, l.spec.Bytes)
}

func (l *loops) close() error {
	var problems []error
	if len(l.names) > 0 {
		problems = append(problems, l.limit(0, 0))
	}
	dir := filepath.Join(l.folder, "disk")
	if _, err := tool("mountpoint", "-q", dir); err == nil {
		_, err := tool("umount", dir)
		problems = append(problems, err)
	}
	for i := len(l.names) - 1; i >= 0; i-- {
		_, err := tool("losetup", "--detach", "/dev/"+l.names[i])
		problems = append(problems, err)
	}
	if l.group != blkio {
		problems = append(problems, os.Remove(l.group))
	}
	return errors.Join(append(problems, os.RemoveAll(l.folder))...)
}

// tool runs a program of the system and returns what it prints, without the newline.
func tool(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return text, nil
}
