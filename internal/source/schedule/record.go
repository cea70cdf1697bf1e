//go:build linux && (amd64 || arm64)

package schedule

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// The sizes of the records in sched.bpf.c.
const (
	headSize  = 24
	beganSize = headSize + 16
	inSize    = headSize + 16
	outSize   = headSize + 40
	sumSize   = outSize + 56
)

// decoder turns records into events.
type decoder struct {
	job   func(slot, generation uint32) (string, bool)
	peers map[peer]string // the text of peers that were seen, so that it is made once
}

// peer is the other end of a socket.
type peer struct {
	family  uint16
	port    uint16
	address [16]byte
}

// maxPeers bounds the texts that are kept.
const maxPeers = 1024

var order = binary.NativeEndian

// decode fills e, which is empty. It returns false for a record to be left out.
func (d *decoder) decode(r []byte, e *sample.ThreadEvent) bool {
	if len(r) < headSize {
		return false
	}
	e.At = sample.OnMonotonic(time.Duration(order.Uint64(r)))
	e.TID = int(order.Uint32(r[8:]))
	e.PID = int(order.Uint32(r[12:]))
	e.Kind = sample.ThreadEventKind(r[16])
	switch {
	case e.Kind == sample.ThreadBegan && len(r) >= beganSize:
		var followed bool
		e.Job, followed = d.job(order.Uint32(r[24:]), order.Uint32(r[28:]))
		e.Creator = int(order.Uint32(r[32:]))
		return followed
	case e.Kind == sample.ThreadIn && len(r) >= inSize:
		e.WakerKind = sample.WakerKind(r[17])
		if woken := order.Uint64(r[24:]); woken != 0 {
			e.Woken = sample.OnMonotonic(time.Duration(woken))
		}
		e.Waker = int(order.Uint32(r[32:]))
		e.WakerPID = int(order.Uint32(r[36:]))
		return true
	case e.Kind == sample.ThreadOut && len(r) >= outSize:
		d.out(r, e)
		return true
	case e.Kind == sample.ThreadSum && len(r) >= sumSize:
		d.out(r, e)
		e.From = sample.OnMonotonic(time.Duration(order.Uint64(r[64:])))
		e.Running = time.Duration(order.Uint64(r[72:]))
		e.Ready = time.Duration(order.Uint64(r[80:]))
		e.Blocked = time.Duration(order.Uint64(r[88:]))
		e.Asleep = time.Duration(order.Uint64(r[96:]))
		e.Waker = int(order.Uint32(r[104:]))
		e.WakerPID = int(order.Uint32(r[108:]))
		e.WakerKind = sample.WakerKind(order.Uint32(r[112:]))
		return true
	}
	return false
}

func (d *decoder) out(r []byte, e *sample.ThreadEvent) {
	e.State = sample.ThreadState(r[17])
	e.File = sample.FileKind(r[18])
	e.IOWait = r[19] != 0
	e.Syscall = int(int16(order.Uint16(r[20:])))
	e.Detail = order.Uint64(r[24:])
	e.User = time.Duration(order.Uint32(r[32:])) * time.Microsecond
	e.System = time.Duration(order.Uint32(r[36:])) * time.Microsecond
	e.Fetched = uint64(order.Uint32(r[40:]))
	e.Chars = uint64(order.Uint32(r[44:]))
	switch e.File {
	case sample.CharDevice, sample.BlockDevice: // dev_t of the kernel
		e.Detail = unix.Mkdev(uint32(e.Detail>>20), uint32(e.Detail&(1<<20-1)))
	case sample.Socket:
		p := peer{family: order.Uint16(r[22:]), port: uint16(e.Detail >> 32)}
		copy(p.address[:], r[48:64])
		e.Detail &= 1<<32 - 1
		e.Peer = d.peer(p)
	}
}

// peer returns the text of a peer: "" for a socket that is not connected.
func (d *decoder) peer(p peer) string {
	if text, known := d.peers[p]; known {
		return text
	}
	if d.peers == nil || len(d.peers) >= maxPeers {
		d.peers = map[peer]string{}
	}
	text := p.String()
	d.peers[p] = text
	return text
}

func (p peer) String() string {
	switch p.family {
	case unix.AF_INET, unix.AF_INET6:
		if p.port == 0 {
			return ""
		}
		address := netip.AddrFrom16(p.address).Unmap()
		if p.family == unix.AF_INET {
			address = netip.AddrFrom4([4]byte(p.address[:4]))
		}
		return netip.AddrPortFrom(address, p.port).String()
	case unix.AF_UNIX:
		return "unix"
	case unix.AF_NETLINK:
		return "netlink"
	case unix.AF_VSOCK:
		return "vsock"
	}
	return "family " + strconv.Itoa(int(p.family))
}
