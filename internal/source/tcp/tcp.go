// Package tcp reads the TCP sockets of this network namespace, with what each has moved (sock_diag(7), tcp_info in
// tcp(7)). The kernel gives that to every user.
package tcp

import (
	"net/netip"
	"time"
)

// Socket is one TCP socket that is connected, connects or listens.
type Socket struct {
	Cookie     uint64 // unique among all sockets since boot
	Inode      uint32 // as in /proc/PID/fd; 0 of one that no process has open
	Local      netip.AddrPort
	Remote     netip.AddrPort
	Listening  bool
	Connecting bool // it is not connected yet

	Received     uint64 // bytes of data
	Sent         uint64 // bytes of data, without what was sent again
	Messages     uint32 // packets of data sent: at least one for each request. It wraps
	Packets      uint32 // packets of data received. It wraps
	OutOfOrder   uint32 // packets that came out of order: others before them were lost, or late. It wraps
	RTT          time.Duration
	MinRTT       time.Duration // 0 where it is not known
	Silent       time.Duration // since data came last, or since it is connected
	ReceiveSpace uint32        // bytes that the peer may send ahead at most; 0 where it is not known

	counts bool     // it has the counters
	family uint8    // of the kernel
	id     [48]byte // struct inet_diag_sockid
}

// Change is what the kernel reported of a connection that a thread of a job has opened.
type Change struct {
	Job    string
	Socket Socket // without its Inode
	Closed bool   // else it is established
	Space  uint32 // inode of its network namespace; 0 if it is not known
}

// ID identifies a connection to the kernel.
type ID struct {
	Family                uint8 // AF_INET or AF_INET6
	Local, Remote         [16]byte
	LocalPort, RemotePort uint16
	Device                uint32 // that it is bound to; 0 for none
	Cookie                uint64
}
