//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/lab/netmount"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// storage is what has the files of a case.
type storage interface {
	Fast() error
	Slow() error // makes its files cold, too
}

// mounted is a mount of NFS, whose server has its files in memory.
type mounted struct {
	*netmount.Share
	delay time.Duration
}

// storage returns the disk of a case, or the mount of -nfs.
func (b *bench) storage(ctx context.Context, p *plan) (storage, error) {
	if b.nfs == "" {
		return b.disk(ctx, p)
	}
	p.Disk = slowdisk.Network
	return b.mounted(p)
}

// mounted returns the mount of -nfs, which is made when it is first needed.
func (b *bench) mounted(p *plan) (storage, error) {
	if b.mount == nil {
		folder, dir := filepath.Join(b.folder, "served"), b.place(slowdisk.Network)
		if err := errors.Join(os.Mkdir(folder, 0o755), os.Mkdir(dir, 0o755)); err != nil {
			return nil, err
		}
		share, err := netmount.Open(b.nfs, folder, dir, "actimeo=1") // models are written behind the client's back
		if err != nil {
			return nil, err
		}
		b.mount = &mounted{Share: share}
	}
	b.mount.delay = max(p.Delay, time.Millisecond)
	return b.mount, b.mount.Fast()
}

func (m *mounted) Fast() error {
	m.Delay(netmount.Read, 0)
	return nil
}

func (m *mounted) Slow() error {
	m.Delay(netmount.Read, m.delay)
	time.Sleep(2 * time.Second) // until the client asks for attributes again
	return slowdisk.Cold(m.Dir)
}
