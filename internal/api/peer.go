package api

import (
	"context"
	"net"
)

type peerKey struct{}

// withPeer adds the process that opened a connection to its context.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if unix, ok := c.(*net.UnixConn); ok {
		if pid := peerPID(unix); pid > 0 {
			return context.WithValue(ctx, peerKey{}, pid)
		}
	}
	return ctx
}

// callerPID returns the process that sent a request, or 0 if it is unknown: over TCP, or from a PID namespace that is
// not visible here.
func callerPID(ctx context.Context) int {
	if pid, ok := ctx.Value(peerKey{}).(int); ok {
		return pid
	}
	return 0
}
