package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/lend"
	"github.com/stallspan/stallspan/internal/sample"
)

// Lending makes the server lend the scheduler's events to programs of plain users. Call it before Serve. Several
// servers may share a Lender.
func (s *Server) Lending(l *lend.Lender) *Server {
	s.lender = l
	return s
}

// schedule sends frames of the scheduler's events of the client's own processes. The body has orders, one line of JSON
// each, for as long as the response lasts.
func (s *Server) schedule(w http.ResponseWriter, r *http.Request) error {
	loan, err := s.admit(r)
	if err != nil {
		return err
	}
	defer loan.Close()
	control := http.NewResponseController(w)
	if err := errors.Join(control.EnableFullDuplex(), control.SetReadDeadline(time.Time{})); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	send := func(frame []byte) error { return s.send(w, control, [][]byte{frame}) }
	if err := send(nil); err != nil { // the header, so that the client knows that it was admitted
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	orders := make(chan lend.Order)
	var reader sync.WaitGroup
	reader.Go(func() {
		if sample.Protect(func() { readOrders(ctx, r.Body, orders) }) != nil {
			cancel()
		}
	})
	stop := context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) }) // ends the reader
	defer stop()
	ended := make(chan struct{})
	reader.Go(func() {
		select {
		case <-s.ending:
			cancel()
		case <-ended:
		}
	})
	_ = loan.Serve(ctx, orders, send) // the header is sent, so the end of the response is all that can be sent
	cancel()
	close(ended)
	reader.Wait()
	return nil
}

// admit returns a loan for the client, or why it gets no loan.
func (s *Server) admit(r *http.Request) (*lend.Loan, error) {
	conn := callerConn(r.Context())
	switch version := r.URL.Query().Get("version"); {
	case s.lender == nil:
		return nil, refuse(http.StatusNotFound, "this server does not lend events of the scheduler: use stallspan agent, or "+
			"a Collector with the receiver stallspan, with CAP_BPF and CAP_PERFMON")
	case !s.local || conn == nil:
		return nil, refuse(http.StatusForbidden, "the scheduler's events are for the owner of the processes: use the unix "+
			"socket, not TCP")
	case version != strconv.Itoa(lend.Version):
		return nil, refuse(http.StatusBadRequest, "version %s of the frames is unknown: use version=%d", excerpt(version),
			lend.Version)
	}
	peer, err := lend.PeerOf(conn)
	if err != nil {
		return nil, refuse(http.StatusForbidden, "%v", err)
	}
	loan, err := s.lender.Admit(peer)
	if err != nil {
		return nil, refuse(http.StatusServiceUnavailable, "%v", err)
	}
	return loan, nil
}

// readOrders reads orders until the body ends, has a line that is no order, or ctx ends. It reads no faster than they
// are obeyed.
func readOrders(ctx context.Context, body io.Reader, orders chan<- lend.Order) {
	defer close(orders)
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, lend.MaxOrder)
	for lines.Scan() {
		o, err := lend.ParseOrder(lines.Bytes())
		if err != nil {
			return
		}
		select {
		case orders <- o:
		case <-ctx.Done():
			return
		}
	}
}
