//go:build !linux

package lend

import (
	"context"
	"errors"
	"net"
)

// The errors of Admit. Only Linux has these events.
var (
	ErrBusy        = errors.New("too many programs ask for the scheduler's events: try again in a minute")
	ErrUnavailable = errors.New("the scheduler's events can be read on Linux only")
)

// Peer is who has connected to the server's socket.
type Peer struct{}

// PeerOf returns ErrUnavailable.
func PeerOf(*net.UnixConn) (Peer, error) { return Peer{}, ErrUnavailable }

// Lender lends nothing.
type Lender struct{}

// Loan is what one borrower has.
type Loan struct{}

// Admit returns ErrUnavailable.
func (*Lender) Admit(Peer) (*Loan, error) { return nil, ErrUnavailable }

// Close does nothing.
func (*Loan) Close() {}

// Serve does nothing.
func (*Loan) Serve(context.Context, <-chan Order, func([]byte) error) error { return ErrUnavailable }
