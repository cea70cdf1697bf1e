package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// machine is a folder that stands for "/" of this machine with other disks. What they did so far is in a file that is
// mounted over /proc/diskstats, for the processes of command alone.
type machine struct {
	root  string
	stats *os.File
	disks int
}

const workEvery = 100 * time.Millisecond

// newMachine makes a machine with idle disks.
func newMachine(root string, disks int) (*machine, error) {
	m := &machine{root: root, disks: disks}
	for i := range disks {
		if err := os.MkdirAll(filepath.Join(root, "sys/class/block", diskName(i)), 0o755); err != nil {
			return nil, err
		}
	}
	err := errors.Join(os.MkdirAll(filepath.Join(root, "proc"), 0o755),
		os.MkdirAll(filepath.Join(root, "sys/fs/cgroup"), 0o755))
	if err != nil {
		return nil, err
	}
	if m.stats, err = os.Create(filepath.Join(root, "diskstats")); err != nil {
		return nil, err
	}
	return m, m.write(0)
}

func diskName(i int) string { return fmt.Sprint("soaked", i) }

// command returns a command in a mount namespace of its own, with the machine's disks.
func (m *machine) command(arguments ...string) *exec.Cmd {
	const mounts = `
		mount --rbind /proc "$0/proc" &&
		mount --bind "$0/diskstats" "$0/proc/diskstats" &&
		mount --rbind /sys/fs/cgroup "$0/sys/fs/cgroup" &&
		exec "$@"`
	command := exec.Command("sh", append([]string{"-ec", mounts, m.root}, arguments...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return command
}

// work lets the disks work, each at its own rate, until ctx ends.
func (m *machine) work(ctx context.Context) error {
	ticker := time.NewTicker(workEvery)
	defer ticker.Stop()
	for n := uint64(1); ; n++ {
		if err := m.write(n); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return m.stats.Close()
		case <-ticker.C:
		}
	}
}

// write replaces the counters by those after n periods of work. All lines have the same length at any time.
func (m *machine) write(n uint64) error {
	var text []byte
	for i := range m.disks {
		reads, writes := n*uint64(i%7), n*uint64(i%5)
		busy := min(5*reads+2*writes, n*uint64(workEvery.Milliseconds()))
		const line = "%4d %7d %s %10d 0 %12d %10d %10d 0 %12d %10d 0 %10d %10d 0 0 0 0 0 0\n"
		text = fmt.Appendf(text, line, 259, i, diskName(i), reads, reads*64, reads*5, writes, writes*16, writes*2, busy,
			reads*5+writes*2)
	}
	_, err := m.stats.WriteAt(text, 0)
	return err
}
