package api

import (
	"context"
	"net"
)

type peerKey struct{}

// withPeer remembers in a connection's context which process opened it.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if unix, ok := c.(*net.UnixConn); ok {
		if pid := peerPID(unix); pid > 0 {
			return context.WithValue(ctx, peerKey{}, pid)
		}
	}
	return ctx
}

// callerPID is the process that a request came from, 0 where it cannot be told: over TCP, or from a PID namespace that
// is not visible here.
func callerPID(ctx context.Context) int {
	if pid, ok := ctx.Value(peerKey{}).(int); ok {
		return pid
	}
	return 0
}
