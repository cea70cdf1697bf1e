package helper

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// Client asks the helper. It implements process.Reader.
type Client struct {
	conn io.ReadWriteCloser // one Read or Write is one packet
	done chan struct{}      // closed when no more frames are read
	reap func()             // waits for the keeper, which ends with the connection; nil for none

	mu      sync.Mutex
	number  uint32                 // of the newest question
	waiting map[uint32]chan answer // for the answer to a question
	failing error                  // no use to ask
}

// answer is the content of an answer, or an error.
type answer struct {
	op   op
	body []byte
	err  error
}

// NewClient returns a Client that asks over a connection that keeps the limits of packets.
func NewClient(conn io.ReadWriteCloser) *Client {
	c := &Client{conn: conn, done: make(chan struct{}), waiting: map[uint32]chan answer{}}
	go c.receive()
	return c
}

// Close ends the helper.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	if c.reap != nil {
		c.reap()
	}
	return err
}

// receive takes frames until the connection ends.
func (c *Client) receive() {
	defer close(c.done)
	if err := sample.Protect(c.take); err != nil {
		_ = c.conn.Close()
		c.fail(err)
	}
}

// take is receive without its end.
func (c *Client) take() {
	buf := make([]byte, maxAnswer+1)
	for {
		n, err := c.conn.Read(buf)
		if err != nil || n == 0 {
			c.fail(errClosed)
			return
		}
		o, number, body, err := split(buf[:n])
		if err != nil || n > maxAnswer {
			_ = c.conn.Close() // what this helper says has no meaning
			c.fail(errAnswer)
			return
		}
		switch o {
		case opHello:
			c.fail(nil)
		case opEnded:
			c.fail(errEnded)
		default:
			c.deliver(number, answer{op: o, body: append([]byte(nil), body...)})
		}
	}
}

// fail sets why it is of no use to ask from now on; nil if it is.
func (c *Client) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = why
	if why == nil {
		why = errEnded // the questions before were asked of another helper
	}
	for number, to := range c.waiting {
		delete(c.waiting, number)
		to <- answer{err: why}
	}
}

func (c *Client) deliver(number uint32, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.failing, errLate) {
		c.failing = nil
	}
	if to := c.waiting[number]; to != nil {
		delete(c.waiting, number)
		to <- a
	}
}

// ask sends a question and returns the content of its answer.
func (c *Client) ask(q *question) ([]byte, error) {
	to := make(chan answer, 1)
	c.mu.Lock()
	if c.failing != nil {
		defer c.mu.Unlock()
		return nil, c.failing
	}
	c.number++
	q.number = c.number
	c.waiting[q.number] = to
	c.mu.Unlock()
	if _, err := c.conn.Write(q.append(make([]byte, 0, maxQuestion))); err != nil {
		c.forget(q.number, nil)
		return nil, errClosed
	}
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	select {
	case a := <-to:
		if a.err == nil && a.op != q.op {
			return nil, errAnswer
		}
		return a.body, a.err
	case <-timer.C:
		c.forget(q.number, errLate)
		return nil, errLate
	}
}

// forget waits no longer for an answer.
func (c *Client) forget(number uint32, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, number)
	if c.failing == nil {
		c.failing = why
	}
}

// Bytes implements process.Reader. A large list is asked for in parts, so that others need not wait for all.
func (c *Client) Bytes(of []process.Key, into []process.Bytes) error {
	for len(of) > 0 {
		n := min(len(of), maxKeys)
		body, err := c.ask(&question{op: opBytes, keys: of[:n]})
		if err != nil {
			return err
		}
		if parseBytes(body, into[:n]) != nil {
			return errAnswer
		}
		of, into = of[n:], into[n:]
	}
	return nil
}

// Files implements process.Reader.
func (c *Client) Files(of process.Key, from, limit int) (list []process.OpenFile, files int, err error) {
	body, err := c.ask(&question{op: opFiles, keys: []process.Key{of}, from: from, limit: min(limit, maxOpenFiles)})
	if err != nil {
		return nil, 0, err
	}
	list, files, failed, err := parseFiles(body)
	return list, files, failure(failed, err)
}

// SameProgram implements process.Reader.
func (c *Client) SameProgram(one, other process.Key) (bool, error) {
	body, err := c.ask(&question{op: opSame, keys: []process.Key{one, other}})
	if err != nil {
		return false, err
	}
	same, failed, err := parseSame(body)
	return same, failure(failed, err)
}

// ModelFiles implements process.Reader. It returns files of models only, as many as an answer holds.
func (c *Client) ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error) {
	body, err := c.ask(&question{op: opModels, keys: []process.Key{of}, models: want})
	if err != nil {
		return process.Files{}, err
	}
	all, failed, err := parseModels(body)
	return all, failure(failed, err)
}

// HasDevice implements process.Reader.
func (c *Client) HasDevice(of process.Key, device uint64) (open bool, files int, err error) {
	body, err := c.ask(&question{op: opDevice, keys: []process.Key{of}, device: device})
	if err != nil {
		return false, 0, err
	}
	open, files, failed, err := parseDevice(body)
	return open, files, failure(failed, err)
}

// failure returns the error of an answer: of its format, or the one in it.
func failure(number syscall.Errno, err error) error {
	switch {
	case err != nil:
		return errAnswer
	case number != 0:
		return number
	}
	return nil
}

// hello is the frame with which a helper begins.
func hello() []byte { return header(nil, opHello, 0) }

// ended is the frame that reports the end of a helper.
func ended(status int) []byte {
	return binary.LittleEndian.AppendUint32(header(nil, opEnded, 0), uint32(status))
}
