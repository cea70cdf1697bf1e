package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Source asks the kernel for sockets. It is not safe for concurrent use. A library would make garbage of each socket of
// the machine, once a second.
type Source struct {
	fd     int // -1 if it is closed
	buf    []byte
	number uint32 // of the newest request
}

// New returns a source. It opens nothing before it is used.
func New() *Source { return &Source{fd: -1} }

const (
	// bufferSize is the largest piece in which the kernel answers (netlink_recvmsg).
	bufferSize = 32 << 10
	// patience bounds the time for an answer. The kernel makes it while the call waits.
	patience = time.Second

	headSize    = unix.SizeofNlMsghdr
	requestSize = 56 // struct inet_diag_req_v2
	messageSize = 72 // struct inet_diag_msg
	attrSize    = unix.SizeofNlAttr

	idSize         = 48 // struct inet_diag_sockid
	oldRequestSize = 60 // struct inet_diag_req

	listAll  = 18 // TCPDIAG_GETSOCK: as the newer request, of all families in one walk
	byFamily = 20 // SOCK_DIAG_BY_FAMILY
	infoAttr = 2  // INET_DIAG_INFO
)

// The states of connections, and with those of sockets that connect or listen (include/net/tcp_states.h).
const (
	connected = 1<<unix.BPF_TCP_ESTABLISHED | 1<<unix.BPF_TCP_FIN_WAIT1 | 1<<unix.BPF_TCP_FIN_WAIT2 |
		1<<unix.BPF_TCP_CLOSE_WAIT
	listed = connected | 1<<unix.BPF_TCP_SYN_SENT | 1<<unix.BPF_TCP_LISTEN
)

// List calls visit for each socket. The socket is valid until visit returns. The kernel walks its whole table of
// connections, which takes milliseconds on a large machine.
func (s *Source) List(visit func(*Socket)) error {
	request := s.request(listAll, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, oldRequestSize)
	request[headSize+3] = 1 << (infoAttr - 1)
	order.PutUint32(request[headSize+4+idSize:], listed)
	if err := s.ask(request, visit); errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("the sockets of this machine cannot be listed, load the kernel module tcp_diag: %w", err)
	} else if err != nil {
		return fmt.Errorf("the sockets of this machine cannot be listed, allow AF_NETLINK: %w", err)
	}
	return nil
}

// Refresh reads a connection again, in microseconds. It is false if the connection is closed.
func (s *Source) Refresh(socket *Socket) (open bool, err error) {
	request := s.request(byFamily, unix.NLM_F_REQUEST, requestSize)
	body := request[headSize:]
	body[0] = socket.family
	body[1] = unix.IPPROTO_TCP
	body[2] = 1 << (infoAttr - 1)
	order.PutUint32(body[4:], connected)
	copy(body[8:8+idSize], socket.id[:])
	err = s.ask(request, func(found *Socket) {
		if open = found.Cookie == socket.Cookie && found.counts; !open {
			return // only its ports are kept for a while
		}
		if found.Inode == 0 { // its process has closed it, and the kernel sends the rest
			found.Inode = socket.Inode
		}
		*socket = *found
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
		return false, nil
	}
	return open, err
}

// Close closes the source's own socket. the next request opens it again.
func (s *Source) Close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

func (s *Source) open() error {
	if s.fd >= 0 {
		return nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	wait := unix.NsecToTimeval(patience.Nanoseconds())
	if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})); err != nil {
		_ = unix.Close(fd)
		return err
	}
	s.fd = fd
	if s.buf == nil {
		s.buf = make([]byte, bufferSize)
	}
	return nil
}

var order = binary.NativeEndian

// request begins a request with the next number.
func (s *Source) request(kind, flags uint16, size int) []byte {
	s.number++
	request := make([]byte, headSize+size)
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], kind)
	order.PutUint16(request[6:], flags)
	order.PutUint32(request[8:], s.number)
	return request
}

// ask sends a request and reads its answer.
func (s *Source) ask(request []byte, visit func(*Socket)) error {
	if err := s.open(); err != nil {
		return err
	}
	err := s.exchange(request, visit)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESTALE) {
		s.Close() // what is left of an answer must not be taken for the next one
	}
	return err
}

func (s *Source) exchange(request []byte, visit func(*Socket)) error {
	if err := again(func() error { return unix.Send(s.fd, request, 0) }); err != nil {
		return err
	}
	one := order.Uint16(request[6:])&unix.NLM_F_DUMP == 0
	for {
		n := 0
		err := again(func() (err error) {
			n, _, err = unix.Recvfrom(s.fd, s.buf, 0)
			return err
		})
		if err != nil {
			return err
		}
		found := false
		done, err := parse(s.buf[:n], s.number, func(socket *Socket) {
			found = true
			visit(socket)
		})
		if done || err != nil || one && found {
			return err
		}
	}
}

// again repeats a call that a signal has ended.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

var errFormat = errors.New("an answer of sock_diag has a format that is not known")

// parse reads the messages of a piece of an answer. done is true for the last piece.
func parse(piece []byte, number uint32, visit func(*Socket)) (done bool, err error) {
	for len(piece) >= headSize {
		length := int(order.Uint32(piece))
		if length < headSize || length > len(piece) {
			return true, errFormat
		}
		body := piece[headSize:length]
		if order.Uint32(piece[8:]) == number { // else of a request that was given up
			switch order.Uint16(piece[4:]) {
			case unix.NLMSG_DONE:
				return true, nil
			case unix.NLMSG_ERROR:
				if len(body) < 4 {
					return true, errFormat
				}
				return true, unix.Errno(-int32(order.Uint32(body)))
			case byFamily, listAll:
				var socket Socket
				if !socket.parse(body) {
					return true, errFormat
				}
				visit(&socket)
			}
		}
		piece = piece[min(align(length), len(piece)):]
	}
	return false, nil
}

func align(length int) int { return (length + 3) &^ 3 }

// parse reads struct inet_diag_msg and what follows it.
func (s *Socket) parse(body []byte) bool {
	if len(body) < messageSize {
		return false
	}
	family, state := body[0], body[1]
	s.family, s.id = family, [idSize]byte(body[4:])
	s.Listening, s.Connecting = state == unix.BPF_TCP_LISTEN, state == unix.BPF_TCP_SYN_SENT
	s.Local = address(family, body[8:24], body[4:6])
	s.Remote = address(family, body[24:40], body[6:8])
	s.Cookie = uint64(order.Uint32(body[44:])) | uint64(order.Uint32(body[48:]))<<32
	s.Inode = order.Uint32(body[68:])
	for rest := body[messageSize:]; len(rest) >= attrSize; {
		length := int(order.Uint16(rest))
		if length < attrSize || length > len(rest) {
			return false
		}
		if order.Uint16(rest[2:]) == infoAttr {
			s.counts = true
			s.info(rest[attrSize:length])
		}
		rest = rest[min(align(length), len(rest)):]
	}
	return true
}

// Socket returns a connection without counters, which Refresh can read.
func (id *ID) Socket() Socket {
	s := Socket{Cookie: id.Cookie, family: id.Family}
	binary.BigEndian.PutUint16(s.id[0:], id.LocalPort)
	binary.BigEndian.PutUint16(s.id[2:], id.RemotePort)
	copy(s.id[4:], id.Local[:])
	copy(s.id[20:], id.Remote[:])
	order.PutUint32(s.id[36:], id.Device)
	order.PutUint32(s.id[40:], uint32(id.Cookie))
	order.PutUint32(s.id[44:], uint32(id.Cookie>>32))
	s.Local, s.Remote = address(id.Family, s.id[4:20], s.id[0:2]), address(id.Family, s.id[20:36], s.id[2:4])
	return s
}

// info reads struct tcp_info, which grows from kernel to kernel.
func (s *Socket) info(value []byte) {
	var info unix.TCPInfo
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info)), value) // plain numbers in the kernel's order
	s.Received, s.Sent = info.Bytes_received, info.Bytes_sent-min(info.Bytes_retrans, info.Bytes_sent)
	s.Messages, s.Packets, s.OutOfOrder = info.Data_segs_out, info.Data_segs_in, info.Rcv_ooopack
	s.RTT = time.Duration(info.Rtt) * time.Microsecond
	s.Silent = time.Duration(info.Last_data_recv) * time.Millisecond
	if info.Min_rtt != ^uint32(0) { // the kernel's unknown
		s.MinRTT = time.Duration(info.Min_rtt) * time.Microsecond
	}
	s.ReceiveSpace = max(info.Rcv_wnd, info.Rcv_ssthresh)
}

func address(family uint8, ip, port []byte) netip.AddrPort {
	number := binary.BigEndian.Uint16(port)
	switch family {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[:4])), number)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(ip)).Unmap(), number)
	}
	return netip.AddrPort{}
}

// MountID returns the ID of the mount that all sockets of this machine are on, as in /proc/PID/fdinfo; 0 if it is not
// known.
func MountID() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if number, found := bytes.CutPrefix(line, []byte("mnt_id:")); found {
			id, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
			return id
		}
	}
	return 0
}

// Namespace returns the inode of this program's network namespace; 0 if it is not known.
func Namespace() uint32 {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return 0
	}
	number, _ := strconv.ParseUint(strings.Trim(name, "net:[]"), 10, 32)
	return uint32(number)
}
