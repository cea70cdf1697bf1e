package lend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// link is one request to a server, with its response.
type link struct {
	cancel   context.CancelFunc
	orders   chan []byte
	answered chan struct{} // closed when a server has accepted the request, or all have refused
	refused  error         // valid once answered is closed
	done     chan struct{} // closed after the response
}

// works reports whether a server has accepted the request and the response has not ended.
func (l *link) works() bool {
	if l.over() {
		return false
	}
	select {
	case <-l.answered:
		return l.refused == nil
	default:
		return false
	}
}

func (l *link) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// run asks one socket after another, and takes frames until the response ends.
func (l *link) run(ctx context.Context, b *Borrower) error {
	why := fmt.Errorf("%w on %s", ErrNoServer, strings.Join(b.sockets, " or "))
	for _, path := range b.sockets {
		response, ended, err := l.ask(ctx, path)
		if err != nil {
			why = cmp.Or(unanswered(path, err), why)
			continue
		}
		close(l.answered)
		err = l.receive(response, b)
		_ = response.Close()
		ended()
		return fmt.Errorf("%s sends no more events of the scheduler, check that it runs: %w", path, err)
	}
	l.refused = fmt.Errorf("no agent lends the scheduler's events: %w", why)
	close(l.answered)
	return l.refused
}

// unanswered is why the server of a socket lends nothing. It is nil if there is no server.
func unanswered(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return errors.New(trust.Refused(path))
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ask requests frames on a socket. Call ended after the response was closed: it waits for the writer of orders.
func (l *link) ask(ctx context.Context, path string) (response io.ReadCloser, ended func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(answerWait, cancel)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return trust.Dial(ctx, path) }
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: MaxOrder}
	body, orders := io.Pipe()
	var writer sync.WaitGroup
	ended = func() {
		timer.Stop()
		cancel()
		_ = body.Close()
		writer.Wait()
	}
	url := "http://localhost" + Path + "?version=" + strconv.Itoa(Version)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		ended()
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		ended()
		return nil, nil, err
	}
	timer.Stop()
	if answer.StatusCode != http.StatusOK {
		err := refusal(answer)
		_ = answer.Body.Close()
		ended()
		return nil, nil, err
	}
	writer.Go(func() { l.write(ctx, orders) }) // not before: the next server needs all orders if this one refuses
	return answer.Body, ended, nil
}

// refusal returns the error of a response.
func refusal(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, MaxOrder))
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &refused) != nil || refused.Error == "" {
		return fmt.Errorf("it answers with %s", answer.Status)
	}
	return errors.New(refused.Error)
}

// write passes orders on until ctx ends or the request does.
func (l *link) write(ctx context.Context, to *io.PipeWriter) {
	defer func() { _ = to.Close() }()
	for {
		select {
		case line := <-l.orders:
			if _, err := to.Write(line); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// receive takes frames until there are no more.
func (l *link) receive(from io.Reader, b *Borrower) error {
	var buf []byte
	for {
		frame, err := readFrame(from, buf)
		if err != nil {
			return err
		}
		buf = frame
		s, tail, err := decode(frame, b.origin)
		if err != nil {
			return err
		}
		if err := b.take(s, tail); err != nil {
			return err
		}
	}
}
