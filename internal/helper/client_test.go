package helper

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
)

// newClient returns a Client that asks over a connection that keeps the limits of packets.
func newClient(conn io.ReadWriteCloser) *Client { return &Client{connect(conn, reads)} }

// pair returns a client, and the helper's end of its connection. A pipe of package net keeps the limits of packets that
// fit into the reader's buffer.
func pair(t *testing.T) (*Client, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	c := newClient(ours)
	t.Cleanup(func() { _ = theirs.Close(); c.close() })
	return c, theirs
}

// counting answers with the PID in place of the bytes.
type counting struct{ noReader }

func (counting) Bytes(of []process.Key, into []process.Bytes) error {
	for i, key := range of {
		into[i] = process.Bytes{Read: uint64(key.PID), Chars: key.Start}
	}
	return nil
}

// respond answers n questions, and drops as many before.
func respond(conn net.Conn, reader process.Reader, drop, n int) error {
	s := &server{reader: reader}
	buf := make([]byte, maxQuestion+1)
	for i := range drop + n {
		size, err := conn.Read(buf)
		if err != nil {
			return err
		}
		if i < drop {
			continue
		}
		frame, err := s.answer(buf[:size])
		if err != nil {
			return err
		}
		if _, err := conn.Write(frame); err != nil {
			return err
		}
	}
	return nil
}

func ask(c *Client, n int) ([]process.Bytes, error) {
	keys := make([]process.Key, n)
	for i := range keys {
		keys[i] = process.Key{PID: i + 1, Start: 5}
	}
	into := make([]process.Bytes, n)
	return into, c.Bytes(keys, into)
}

func TestClientAsksInParts(t *testing.T) {
	c, conn := pair(t)
	done := make(chan error, 1)
	go func() { done <- respond(conn, counting{}, 0, 3) }()
	got, err := ask(c, 2*maxKeys+1)
	if err != nil || <-done != nil {
		t.Fatal(err)
	}
	for i, b := range got {
		if b.Read != uint64(i+1) || b.Chars != 5 {
			t.Fatalf("process %d: got %+v", i+1, b)
		}
	}
}

// While no helper runs, questions fail at once. The next one answers again.
func TestClientOutlivesAHelper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, conn := pair(t)
		began := time.Now()
		go func() {
			_, _ = conn.Read(make([]byte, maxQuestion)) // the helper ends with a question
			_, _ = conn.Write(ended(""))
		}()
		for range 2 {
			if _, err := ask(c, 1); !errors.Is(err, c.errEnded("")) {
				t.Errorf("got %v, want %v", err, c.errEnded(""))
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("it fails after %v, want at once", time.Since(began))
		}
		if _, err := conn.Write(hello(maxPID, maxPID-1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() { _ = respond(conn, counting{}, 0, 1) }()
		if got, err := ask(c, 1); err != nil || got[0].Read != 1 {
			t.Errorf("the next helper: got %v, %v", got, err)
		}
		_ = conn.Close()
		synctest.Wait()
		if _, err := ask(c, 1); !errors.Is(err, c.errGone()) {
			t.Errorf("got %v, want %v", err, c.errGone())
		}
		c.close()
	})
}

// A helper that hangs costs one wait, and not one for each question. Its late answer makes it useful again.
func TestClientWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, conn := pair(t)
		first := make([]byte, maxQuestion)
		read := make(chan int, 1)
		go func() { n, _ := conn.Read(first); read <- n }()
		began := time.Now()
		for range 3 {
			if _, err := ask(c, 1); !errors.Is(err, c.errLate()) {
				t.Errorf("got %v, want %v", err, c.errLate())
			}
		}
		if got := time.Since(began); got != answerWait {
			t.Errorf("it waits for %v, want %v", got, answerWait)
		}
		s := &server{reader: counting{}}
		frame, err := s.answer(first[:<-read])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go func() { _ = respond(conn, counting{}, 0, 1) }()
		if _, err := ask(c, 1); err != nil {
			t.Errorf("after the late answer: got %v", err)
		}
		_ = conn.Close()
		c.close()
	})
}

// An answer to another kind of question, or of another length, is no answer.
func TestClientRefusesWrongAnswers(t *testing.T) {
	for name, answer := range map[string][]byte{
		"another kind":   (&content{yes: true}).append(header(nil, opSame, 1), opSame),
		"another length": (&content{bytes: make([]process.Bytes, 2)}).append(header(nil, opBytes, 1), opBytes),
		"no version":     {0, byte(opBytes), 1, 0, 0, 0},
		"too long":       append(header(nil, opBytes, 1), slices.Repeat([]byte{0}, maxAnswer)...),
	} {
		c, conn := pair(t)
		go func() {
			_, _ = conn.Read(make([]byte, maxQuestion))
			_, _ = conn.Write(answer)
			_, _ = io.Copy(io.Discard, conn)
		}()
		if _, err := ask(c, 1); !errors.Is(err, c.errAnswer()) {
			t.Errorf("%s: got %v, want %v", name, err, c.errAnswer())
		}
		_ = conn.Close()
		c.close()
	}
}

// broken is a connection that panics.
type broken struct{ net.Conn }

func (broken) Read([]byte) (int, error) { panic("for the test") }

// A panic while answers are read does not end the program: questions fail from then on.
func TestPanicOfTheClient(t *testing.T) {
	conn, other := net.Pipe()
	defer func() { _ = other.Close() }()
	c := newClient(broken{conn})
	<-c.done
	if _, err := ask(c, 1); err == nil || !strings.Contains(err.Error(), "for the test") {
		t.Errorf("got %v, want the panic", err)
	}
	c.close()
}
