//go:build !linux

package lend

import (
	"context"
	"errors"
	"net"

	"github.com/stallspan/stallspan/internal/sample"
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

// Opener opens a source.
type Opener struct{}

// Scheduler returns an Opener.
func Scheduler(string) Opener { return Opener{} }

// Lender lends nothing.
type Lender struct{}

// NewLender returns a Lender.
func NewLender(Opener) *Lender { return &Lender{} }

// Admit returns ErrUnavailable.
func (*Lender) Admit(Peer) (*Loan, error) { return nil, ErrUnavailable }

// Loan is what one borrower has.
type Loan struct{}

// Close does nothing.
func (*Loan) Close() {}

// Serve returns ErrUnavailable.
func (*Loan) Serve(context.Context, <-chan Order, func([]byte) error) error { return ErrUnavailable }

// Borrower gets nothing.
type Borrower struct{}

// NewBorrower returns a Borrower.
func NewBorrower(...string) *Borrower { return &Borrower{} }

// Follow returns ErrUnavailable.
func (*Borrower) Follow(string, []int) error { return ErrUnavailable }

// Sync returns ErrUnavailable.
func (*Borrower) Sync(string, []int) error { return ErrUnavailable }

// Unfollow does nothing.
func (*Borrower) Unfollow(string) {}

// Read reads nothing.
func (*Borrower) Read(*sample.Sample) error { return nil }

// Trouble returns ErrUnavailable.
func (*Borrower) Trouble() error { return ErrUnavailable }

// Close does nothing.
func (*Borrower) Close() error { return nil }
