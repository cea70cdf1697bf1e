//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// The sizes of the records in programs/state.bpf.h.
const (
	headSize  = 24
	beganSize = headSize + 16 + nameSize
	inSize    = headSize + 16
	outSize   = headSize + 48
	sumSize   = outSize + 40 + 32 + 16
	namedSize = headSize + nameSize

	connectionSize = headSize + 96
	nameSize       = 16

	recordSumOut = 4 // kind of a record that stands for a ThreadSum, a ThreadIn and a ThreadOut
	recordNamed  = 5
	recordFound  = 6

	recordConnection = 7
	recordSumIn      = 8 // stands for a ThreadSum and a ThreadIn: the thread runs on
	closed           = 7 // TCP_CLOSE
)

// decoder turns records into events.
type decoder struct {
	job   func(slot, generation uint32) (string, bool)
	peers map[peer]string           // the text of peers that were seen, so that it is made once
	names map[[nameSize]byte]string // the same of threads
}

// peer is the other end of a socket.
type peer struct {
	family   uint8
	protocol uint8
	port     uint16
	address  [16]byte
}

// maxTexts bounds the texts of either kind that are kept.
const maxTexts = 1024

var order = binary.NativeEndian

// decode adds the events of a record.
func (d *decoder) decode(r []byte, events []sample.ThreadEvent) []sample.ThreadEvent {
	if len(r) < headSize {
		return events
	}
	kind := r[16]
	switch {
	case kind == uint8(sample.ThreadBegan) && len(r) >= beganSize:
		name, followed := d.job(order.Uint32(r[24:]), order.Uint32(r[28:]))
		if !followed {
			return events
		}
		events = add(events, r, sample.ThreadBegan)
		e := &events[len(events)-1]
		e.Job = name
		e.Creator = int(order.Uint32(r[32:]))
		e.Name = d.name([nameSize]byte(r[40:]))
	case kind == uint8(sample.ThreadIn) && len(r) >= inSize:
		events = add(events, r, sample.ThreadIn)
		e := &events[len(events)-1]
		e.WakerKind = sample.WakerKind(r[17])
		if woken := order.Uint64(r[24:]); woken != 0 {
			e.Woken = sample.OnMonotonic(time.Duration(woken))
		}
		e.Waker = int(order.Uint32(r[32:]))
		e.WakerPID = int(order.Uint32(r[36:]))
	case kind == uint8(sample.ThreadOut) && len(r) >= outSize:
		events = add(events, r, sample.ThreadOut)
		d.out(r, &events[len(events)-1])
	case kind == recordSumOut && len(r) >= sumSize:
		events = add(events, r, sample.ThreadSum)
		d.sum(r, &events[len(events)-1])
		events = add(events, r, sample.ThreadIn)
		events = add(events, r, sample.ThreadOut)
		e := &events[len(events)-1]
		d.out(r, e)
		e.Fetching, e.Stolen, e.Fetched, e.Chars = 0, 0, 0, 0 // they are the sum's
	case kind == recordSumIn && len(r) >= sumSize:
		events = add(events, r, sample.ThreadSum)
		d.sum(r, &events[len(events)-1])
		events = add(events, r, sample.ThreadIn)
	case kind == recordFound && len(r) >= outSize:
		events = add(events, r, sample.ThreadFound)
		d.out(r, &events[len(events)-1])
	case kind == recordNamed && len(r) >= namedSize:
		events = add(events, r, sample.ThreadNamed)
		events[len(events)-1].Name = d.name([nameSize]byte(r[headSize:]))
	}
	return events
}

// connection reads struct connection. It reports whether the record is one, of a job that is followed.
func (d *decoder) connection(r []byte) (tcp.Change, bool) {
	if len(r) < connectionSize || r[16] != recordConnection {
		return tcp.Change{}, false
	}
	name, followed := d.job(order.Uint32(r[24:]), order.Uint32(r[28:]))
	if !followed {
		return tcp.Change{}, false
	}
	id := tcp.ID{
		Family: uint8(order.Uint16(r[22:])), Cookie: order.Uint64(r[32:]), Device: order.Uint32(r[76:]),
		LocalPort: order.Uint16(r[84:]), RemotePort: order.Uint16(r[86:]),
		Local: [16]byte(r[88:104]), Remote: [16]byte(r[104:120]),
	}
	s := id.Socket()
	s.Received, s.Sent = order.Uint64(r[40:]), order.Uint64(r[48:])
	s.Messages, s.Packets, s.OutOfOrder = order.Uint32(r[56:]), order.Uint32(r[60:]), order.Uint32(r[64:])
	if rtt := order.Uint32(r[68:]); rtt != ^uint32(0) { // the kernel's unknown
		s.MinRTT = time.Duration(rtt) * time.Microsecond
	}
	s.ReceiveSpace = order.Uint32(r[72:])
	return tcp.Change{Job: name, Socket: s, Closed: r[17] == closed, Space: order.Uint32(r[80:])}, true
}

// add adds an event with what all records begin with.
func add(events []sample.ThreadEvent, r []byte, kind sample.ThreadEventKind) []sample.ThreadEvent {
	return append(events, sample.ThreadEvent{
		At:   sample.OnMonotonic(time.Duration(order.Uint64(r))),
		Kind: kind,
		TID:  int(order.Uint32(r[8:])),
		PID:  int(order.Uint32(r[12:])),
	})
}

// out reads struct out.
func (d *decoder) out(r []byte, e *sample.ThreadEvent) {
	e.Fetching = time.Duration(order.Uint64(r[32:]))
	e.Fetched = uint64(order.Uint32(r[40:]))
	e.Chars = uint64(order.Uint32(r[44:]))
	e.Stolen = time.Duration(order.Uint32(r[64:])) * time.Microsecond
	e.State = sample.ThreadState(r[17])
	e.IOWait = r[19] != 0
	e.Syscall = int(int16(order.Uint16(r[20:])))
	d.file(e, sample.FileKind(r[18]), order.Uint64(r[24:]), order.Uint16(r[22:]), r[48:64])
}

// sum reads struct sum, whose pause is not of the sum.
func (d *decoder) sum(r []byte, e *sample.ThreadEvent) {
	d.out(r, e)
	r = r[outSize:]
	e.From = sample.OnMonotonic(time.Duration(order.Uint64(r)))
	e.Running = time.Duration(order.Uint64(r[8:]))
	e.Ready = time.Duration(order.Uint64(r[16:]))
	e.Blocked = time.Duration(order.Uint64(r[24:]))
	e.Asleep = time.Duration(order.Uint64(r[32:]))
	longest := r[40:]
	e.Syscall = int(int16(order.Uint16(longest)))
	e.State = sample.ThreadState(longest[4])
	e.IOWait = longest[6] != 0
	e.Peer = ""
	d.file(e, sample.FileKind(longest[5]), order.Uint64(longest[8:]), order.Uint16(longest[2:]), longest[16:32])
	e.Waker = int(order.Uint32(r[72:]))
	e.WakerPID = int(order.Uint32(r[76:]))
	e.WakerKind = sample.WakerKind(order.Uint32(r[80:]))
}

// file sets what a thread paused on.
func (d *decoder) file(e *sample.ThreadEvent, kind sample.FileKind, detail uint64, family uint16, address []byte) {
	e.File, e.Detail = kind, detail
	switch kind {
	case sample.CharDevice, sample.BlockDevice: // dev_t of the kernel
		e.Detail = unix.Mkdev(uint32(detail>>20), uint32(detail&(1<<20-1)))
	case sample.Socket:
		p := peer{family: uint8(family), protocol: uint8(family >> 8), port: uint16(detail >> 32)}
		copy(p.address[:], address)
		e.Detail = detail & (1<<32 - 1)
		e.Peer = d.peer(p)
	}
}

// peer returns the text of a peer: "" for a socket that is not connected.
func (d *decoder) peer(p peer) string {
	if text, known := d.peers[p]; known {
		return text
	}
	if d.peers == nil || len(d.peers) >= maxTexts {
		d.peers = map[peer]string{}
	}
	text := p.String()
	d.peers[p] = text
	return text
}

// name returns a thread's name, which ends at the first zero.
func (d *decoder) name(raw [nameSize]byte) string {
	if text, known := d.names[raw]; known {
		return text
	}
	if d.names == nil || len(d.names) >= maxTexts {
		d.names = map[[nameSize]byte]string{}
	}
	text := unix.ByteSliceToString(raw[:])
	d.names[raw] = text
	return text
}

// protocols are the lower halves of those of the internet. That of MPTCP is that of TCP.
var protocols = map[uint8]string{
	unix.IPPROTO_TCP: " over TCP", unix.IPPROTO_UDP: " over UDP", unix.IPPROTO_SCTP: " over SCTP",
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
		return netip.AddrPortFrom(address, p.port).String() + protocols[p.protocol]
	case unix.AF_UNIX:
		return "unix"
	case unix.AF_NETLINK:
		return "netlink"
	case unix.AF_VSOCK:
		return "vsock"
	}
	return "family " + strconv.Itoa(int(p.family))
}
