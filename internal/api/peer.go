package api

import (
	"context"
	"net"
)

type peerKey struct{}

// withPeer adds a connection of a unix socket to its context: it shows which process opened it.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if unix, ok := c.(*net.UnixConn); ok {
		return context.WithValue(ctx, peerKey{}, unix)
	}
	return ctx
}

// callerConn returns the connection of a request, or nil over TCP.
func callerConn(ctx context.Context) *net.UnixConn {
	unix, _ := ctx.Value(peerKey{}).(*net.UnixConn)
	return unix
}

// callerPID returns the process that sent a request, or 0 if it is unknown: over TCP, or from a PID namespace that is
// not visible here.
func callerPID(ctx context.Context) int {
	if unix := callerConn(ctx); unix != nil {
		return max(peerPID(unix), 0)
	}
	return 0
}
