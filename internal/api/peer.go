package api

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// caller is who opened a connection.
type caller struct {
	pid     int // 0 if it is unknown: over TCP, or from a PID namespace that is not visible here
	uid     int // -1 over TCP
	name    string
	tcp     bool
	trusted bool // over TCP, with the server's token
}

// overTCP is the name of all clients over TCP from this machine, which share what one client may use.
const overTCP = "the TCP port"

// privileged reports whether it is known to be root outside of any container, or this program's own user where this
// program is, or has the token: see locate.Owner.
func (c *caller) privileged() bool { return c.name == "" || c.trusted }

// anonymous reports whether a caller is not known: anyone may be at the other end.
func (c *caller) anonymous() bool { return c.tcp && !c.trusted || c.name == locate.Unknown }

// owns reports whether a caller may read and end a window of a client, whose id it knows: its own, or one of its user.
func (c *caller) owns(client string) bool { return c.privileged() || c.name == client }

// lists reports whether a caller is shown what is of a client. Unknown callers are one client, and are not shown what
// others of them have.
func (c *caller) lists(client string) bool { return c.owns(client) && !c.anonymous() }

// problems returns what a caller may read of problems: their texts have names of jobs and paths.
func (c *caller) problems(problems []string) []string {
	if !c.anonymous() || len(problems) == 0 {
		return problems
	}
	return []string{fmt.Sprintf("%d problems: only a caller who is known gets them, over the unix socket", len(problems))}
}

// nameOver returns the name of a client over TCP: its address, or the network that one host has in IPv6.
func nameOver(remote net.Addr) string {
	at, ok := remote.(*net.TCPAddr)
	if !ok || at.IP.IsLoopback() {
		return overTCP
	}
	address, _ := netip.AddrFromSlice(at.IP)
	if address = address.Unmap(); address.Is6() {
		network, _ := address.Prefix(hostBits)
		return "network " + network.String()
	}
	return "address " + address.String()
}

// hostBits is the length of the prefix of a network in IPv6, in which a host may choose its address.
const hostBits = 64

// callers finds out who callers are.
type callers struct{ owners *locate.Owners }

// of returns who opened a connection: see window.Window, Client.
func (a *callers) of(conn net.Conn) caller {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return caller{uid: -1, name: nameOver(conn.RemoteAddr()), tcp: true}
	}
	who := a.owners.Peer(unix)
	return caller{pid: who.PID, uid: who.UID, name: who.Client}
}

// mayName reports whether a caller may have a process followed: one of its own. A process that does not exist is no
// one's.
func (a *callers) mayName(c *caller, pid int) bool {
	if c.privileged() {
		return true
	}
	who := a.owners.Of(pid)
	return who.PID == 0 || !c.anonymous() && who.Client == c.name // a process that is gone cannot be followed
}

// listener limits the open connections. More wait in the kernel's queue. A client has a share of them, and its further
// ones are closed.
type listener struct {
	net.Listener
	of     func(net.Conn) caller
	places *trust.Places
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newListener(l net.Listener, most int, of func(net.Conn) caller) *listener {
	return &listener{
		Listener: l, of: of, places: trust.NewPlaces(most), slots: make(chan struct{}, most), closed: make(chan struct{}),
	}
}

// Shared limits the open connections of a listener to so many. A client over TCP has a share of them.
func Shared(l net.Listener, most int) net.Listener {
	return newListener(l, most, func(c net.Conn) caller { return caller{name: nameOver(c.RemoteAddr())} })
}

// Accept waits for a slot and then for a connection, which gives its slot back when it is closed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		c := &connected{Conn: conn}
		admitted := false
		_ = sample.Protect(func() { // not within a request, where respond would
			c.caller = l.of(conn)
			admitted = l.places.Take(c.name) == nil
		})
		if admitted {
			c.release = sync.OnceFunc(func() {
				l.places.Release(c.name)
				<-l.slots
			})
			return c, nil
		}
		_ = conn.Close()
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type peerKey struct{}

// connected is a connection with who opened it.
type connected struct {
	net.Conn
	caller
	release func()
}

func (c *connected) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite lets package http end a response before it has read all of a request.
func (c *connected) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func peerOfRequest(ctx context.Context) *connected {
	if p, ok := ctx.Value(peerKey{}).(*connected); ok {
		return p
	}
	return &connected{caller: caller{uid: -1, name: overTCP, tcp: true}}
}
