//go:build !linux

package lend

import (
	"context"
	"errors"
	"net"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// ErrBusy is an error of Admit.
var ErrBusy = errors.New("too many programs ask for the scheduler's events: try again in a minute")

var errLinux = errors.New("the scheduler's events can be read on Linux only")

// Peer is who has connected to the server's socket.
type Peer struct{}

// PeerOf returns an error.
func PeerOf(*net.UnixConn) (Peer, error) { return Peer{}, errLinux }

// Opener opens a source.
type Opener struct{}

// Scheduler returns an Opener.
func Scheduler(schedule.Opener) Opener { return Opener{} }

// Lender lends nothing.
type Lender struct{}

// NewLender returns a Lender.
func NewLender(Opener) *Lender { return &Lender{} }

// Admit returns an error.
func (*Lender) Admit(Peer) (*Loan, error) { return nil, errLinux }

// Loan is what one borrower has.
type Loan struct{}

// Close does nothing.
func (*Loan) Close() {}

// Serve returns an error.
func (*Loan) Serve(context.Context, <-chan Order, func([]byte) error) error { return errLinux }

// Borrower gets nothing.
type Borrower struct{}

// Borrow returns an error.
func Borrow(...string) (*Borrower, error) { return nil, errLinux }

// Follow returns an error.
func (*Borrower) Follow(string, []int) error { return errLinux }

// Sync returns an error.
func (*Borrower) Sync(string, []int) error { return errLinux }

// Unfollow does nothing.
func (*Borrower) Unfollow(string) {}

// Read reads nothing.
func (*Borrower) Read(*sample.Sample) error { return nil }

// Trouble returns an error.
func (*Borrower) Trouble() error { return errLinux }

// Close does nothing.
func (*Borrower) Close() error { return nil }
