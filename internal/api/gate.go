package api

import (
	"net"
	"sync"
)

// gate is a listener that lets a bounded number of connections in at once. The others wait in the kernel's queue, so a
// burst of clients is served late rather than turned away. Connections pass through unwrapped.
type gate struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newGate(l net.Listener, places int) *gate {
	return &gate{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{})}
}

// Accept waits for a place and then for a connection, which must be followed by one leave.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.places <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		g.leave()
	}
	return conn, err
}

func (g *gate) leave() { <-g.places }

func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}
