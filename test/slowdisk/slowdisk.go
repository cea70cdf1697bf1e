// Package slowdisk makes storage that is really slow, for tests. The reading program is not modified: its requests pass
// through a file system and a block device with the kernel's own counters, and wait there.
//
//	Spinning, SATA, Parallel   ext4 on a loop device with direct I/O, on a file of a FUSE server that answers late
//	Throttled                  the same with a server that answers at once, and a cgroup limit on the device
//	Network                    the folder of the FUSE server itself, without a block device
//	Memory, Local              a tmpfs; a folder on the local disk
//
// The loop device is a leaf: no device below it has counters. A cgroup limit on a loop device that stands on another
// one needs no server. But it passes requests in slices of 100 ms, and shows at a device that is no leaf: with 100
// reads a second, fio --direct=1 --rw=randread --bs=4k --ioengine=libaio finds a median of 0.03 ms and a 99th
// percentile of 100 ms. So the kinds that model a device use the server, and only Throttled uses the limit.
//
// Medians on two cores, by
//
//	go test -v -count 1 -run 'Spinning|SATA|Parallel|Throttled|Network|Writes' ./test/slowdisk
//
//	Spinning, 10 ms       a read of 4 KiB takes 10.3 ms, one of eight in parallel 80.0 ms; 256 KiB with a flush 51 ms
//	SATA, 64 MiB/s        62.8 MiB/s by 16 readers of 4 KiB, 64.2 by one of 128 KiB, 63.5 by one of 1 MiB, 64.0 by eight
//	Parallel, 5 ms        a read of 4 KiB takes 5.16 ms, one of 32 in parallel 5.15 ms, one of 128 in parallel 7.6 ms
//	Throttled, 400 IOPS   240 reads of 4 KiB by four readers take 506 ms; the device's counters show 15 ms in total
//	Network, 2 ms         a read of 4 KiB takes 2.12 ms, one of eight in parallel 2.14 ms; at 10 ms, 256 KiB with a
//	                      flush take 22 ms
//
// A request is a request of the device, at most 1 MiB; read-ahead decides how many there are. Two cores are exhausted
// at about 15,000 requests a second, where Parallel becomes slower than its delay. Direct reads of Network wait in the
// server's protocol, which the kernel does not count as pressure. Buffered ones wait in the page cache, which it
// counts.
//
// The server is a process of its own, at real-time priority and without garbage collection below 256 MiB. It shares no
// CPU time with the measured program, and no process can wait for itself. It ends with its parent, however that ends,
// and then removes mounts, loop devices, limits and folders.
//
// The backing files are in /dev/shm if that is memory and has room, else in the temporary folder.
//
// It needs Linux, root, /dev/fuse, loop devices and mkfs.ext4. Throttled needs the blkio controller of cgroup v1. Open
// returns an error with what is missing.
package slowdisk

import (
	"context"
	"time"
)

// Kind is the behaviour of a device.
type Kind string

const (
	Spinning  Kind = "spinning"  // one request at a time, Delay each
	SATA      Kind = "sata"      // at most BytesPerSecond, at any queue depth
	Parallel  Kind = "parallel"  // Delay per request, Width requests in parallel: 100 % busy means nothing here
	Throttled Kind = "throttled" // requests wait above the device, whose counters show almost nothing
	Network   Kind = "network"   // a file system without a block device, Delay per request
	Memory    Kind = "memory"    // tmpfs
	Local     Kind = "local"     // a folder on the local disk
)

// Options set how slow a device is. Zero values select the defaults of its Kind, or no limit.
type Options struct {
	Size int64 // capacity in bytes; default 1 GiB
	// of one request, also of a write or flush: default 10 ms, 1 ms (Parallel), 2 ms (Network)
	Delay time.Duration
	Width int // requests in parallel: default 1 (Spinning), 64 (Parallel, Network)
	// of all requests together: default 64 MiB (SATA); for Throttled, of reads and of writes each
	BytesPerSecond int64
	IOPS           int   // for Throttled, of reads and of writes each: default 400
	ReadAhead      int64 // bytes of the kernel's read-ahead; default 128 KiB, as in the kernel
}

// Disk is mounted storage. Its methods are for one goroutine at a time.
type Disk struct {
	Dir     string // an empty folder on it, writable
	Device  string // the leaf disk in /proc/diskstats that counts its I/O; "" for none
	Kind    Kind
	Options Options // with the defaults

	base  string // the parent folder of everything
	guard *guard
	limit limit
}

// Serve must be the first call of a program's main or a package's TestMain. It returns true in a process that Open
// started as a server, after it has served; the process must then end.
func Serve() bool { return serve() }

// Open makes storage that is fast until Slow is called, so that files can be written first. ctx limits Open only. The
// program's main must call Serve first.
func Open(ctx context.Context, kind Kind, o Options) (*Disk, error) {
	o, err := o.of(kind)
	if err != nil {
		return nil, err
	}
	return open(ctx, kind, o)
}
