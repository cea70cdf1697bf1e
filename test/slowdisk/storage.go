// Package slowdisk makes storage that is really slow, for the scenarios. Nothing is emulated in the program that reads:
// its requests go through a file system, a block device with the kernel's own counters, and wait there.
//
//	Spinning, SATA, Parallel   ext4 on a loop device with direct I/O, on a file of a FUSE server that answers late
//	Throttled                  the same with a server that answers at once, and a limit of the cgroup's on the device
//	Network                    the FUSE server's folder itself: there is no block device
//	Memory, Local              a tmpfs; a folder on this machine's own disk
//
// The loop device is a leaf: nothing below it has counters. A limit of the cgroup's on a loop device that stands on
// another one needs no server, but lets requests through in slices of 100 ms and is seen at a device that is no leaf:
// with 100 reads a second, fio --direct=1 --rw=randread --bs=4k --ioengine=libaio finds a median of 0.03 ms and a 99th
// percentile of 100 ms. So the kinds that are about a device have the server, and Throttled alone has the limit.
//
// What they measure like, two cores, by the medians of
//
//	go test -v -count 1 -run 'Spinning|SATA|Parallel|Throttled|Network|Writes' ./internal/scenario/storage
//
//	Spinning, 10 ms       a read of 4 KiB takes 10.3 ms, one of eight at once 80.0 ms; 256 KiB with a flush take 51 ms
//	SATA, 64 MiB/s        62.8 MiB/s by 16 readers of 4 KiB, 64.2 by one of 128 KiB, 63.5 by one of 1 MiB, 64.0 by eight
//	Parallel, 5 ms        a read of 4 KiB takes 5.16 ms, one of 32 at once 5.15 ms, one of 128 at once 7.6 ms
//	Throttled, 400 IOPS   240 reads of 4 KiB by four readers take 506 ms, of which the device's counters see 15 ms in all
//	Network, 2 ms         a read of 4 KiB takes 2.12 ms, one of eight at once 2.14 ms; at 10 ms, 256 KiB with a
//	                      flush take 22 ms
//
// A request is one of the device's, of at most 1 MiB: what is read ahead decides how many there are. From some 15,000
// requests a second on, two cores have no more to give, and Parallel is slower than it says. Direct reads of Network
// wait in the server's protocol, which the kernel does not count as pressure; buffered ones wait in the page cache,
// which it does.
//
// The server is a process of its own, at real-time priority and without garbage collection below 256 MiB: it neither
// shares its CPU time with whoever measures nor can a process wait for itself. It ends with its parent, however that
// ends, and then undoes whatever is left: mounts, loop devices, limits, folders.
//
// What is kept lies in /dev/shm, as far as that is memory and has room, else in the temporary folder.
//
// It needs Linux, root, /dev/fuse, loop devices and mkfs.ext4; Throttled needs the blkio controller of cgroup v1. Open
// says what is missing.
package slowdisk

import (
	"context"
	"time"
)

// Kind is what a device behaves like.
type Kind string

const (
	Spinning  Kind = "spinning"  // one request at a time, Delay each
	SATA      Kind = "sata"      // BytesPerSecond at most, whatever the depth of the queue
	Parallel  Kind = "parallel"  // Delay a request, Width requests at once: 100 % busy says nothing here
	Throttled Kind = "throttled" // the reader is held back above the device, whose own counters show almost nothing
	Network   Kind = "network"   // a file system without a block device, Delay a request
	Memory    Kind = "memory"    // tmpfs
	Local     Kind = "local"     // a folder on this machine's own disk
)

// Options is how slow a device is. Zero values are the defaults of its Kind, or mean that there is no such limit.
type Options struct {
	Size           int64         // bytes that fit; 1 GiB
	Delay          time.Duration // of one request, a write's or a flush's too: 10 ms, 1 ms (Parallel), 2 ms (Network)
	Width          int           // requests that are served at once: 1 (Spinning), 64 (Parallel, Network)
	BytesPerSecond int64         // of all requests together: 64 MiB (SATA); of Throttled, of reads and of writes each
	IOPS           int           // of Throttled alone, of reads and of writes each: 400
	ReadAhead      int64         // bytes that the kernel reads ahead; 128 KiB, its own default
}

// Disk is storage that is mounted and ready. Its methods are for one goroutine at a time.
type Disk struct {
	Dir     string // an empty folder on it, writable
	Device  string // as /proc/diskstats calls the leaf disk whose counters show it; "" where none does
	Kind    Kind
	Options Options // with the defaults filled in

	base  string // holds all of it
	guard *guard
	limit limit
}

// Serve is the first thing that a program's main, or a package's TestMain, calls: it is true where this process was
// started by Open as a server, has served, and must end.
func Serve() bool { return serve() }

// Open makes storage, which is fast until Slow is called: files are laid out first and then read slowly. ctx bounds
// Open alone. The program's main must call Serve first.
func Open(ctx context.Context, kind Kind, o Options) (*Disk, error) {
	o, err := o.of(kind)
	if err != nil {
		return nil, err
	}
	return open(ctx, kind, o)
}
