package api

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/stallspan/stallspan/internal/identity/locate"
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

// connections are those that are open. A client has a share of them.
type connections struct {
	callers *callers
	places  *trust.Places

	mu   sync.Mutex
	open map[net.Conn]caller
}

func newConnections(a *callers) *connections {
	return &connections{callers: a, places: trust.NewPlaces(maxConnections), open: map[net.Conn]caller{}}
}

// admit reports whether a client may have another connection.
func (c *connections) admit(conn net.Conn) bool {
	who := c.callers.of(conn)
	if c.places.Take(who.name) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = who
	return true
}

// closed ends what admit began.
func (c *connections) closed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if who, ok := c.open[conn]; ok {
		delete(c.open, conn)
		c.places.Release(who.name)
	}
}

func (c *connections) caller(conn net.Conn) caller {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[conn]
}

type peerKey struct{}

// connected is a connection with who opened it.
type connected struct {
	caller
	conn net.Conn
}

func peerOfRequest(ctx context.Context) *connected {
	if p, ok := ctx.Value(peerKey{}).(*connected); ok {
		return p
	}
	return &connected{caller: caller{uid: -1, name: overTCP, tcp: true}}
}
