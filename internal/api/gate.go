package api

import (
	"net"
	"sync"
)

// gate is a listener that limits the number of open connections. Further clients wait in the kernel's queue. Unlike
// netutil.LimitListener, it does not wrap connections: their type shows which process called.
type gate struct {
	net.Listener
	admit  func(net.Conn) bool // a connection that it refuses is closed
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newGate(l net.Listener, slots int, admit func(net.Conn) bool) *gate {
	return &gate{Listener: l, admit: admit, slots: make(chan struct{}, slots), closed: make(chan struct{})}
}

// Accept waits for a slot and then for a connection. Each connection needs one call of release.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.slots <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			g.release()
			return conn, err
		}
		if g.admit(conn) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

func (g *gate) release() { <-g.slots }

func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}
