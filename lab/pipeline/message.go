//go:build linux

package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The messages of worker processes to the training process: a length, a kind and a payload, little-endian.
const (
	kindReady = 'r'
	kindBatch = 'b'
	kindError = 'e'
)

const maxMessage = 64 << 20 // bytes

// batchMessage is a finished batch, with its worker's phases since the previous one.
type batchMessage struct {
	batch  int
	sum    uint32
	totals totals
	events []event
}

func appendBatch(to []byte, m *batchMessage) []byte {
	number := func(n int64) { to = binary.LittleEndian.AppendUint64(to, uint64(n)) }
	number(int64(m.batch))
	number(int64(m.sum))
	number(int64(m.totals.records))
	number(m.totals.bytes)
	for _, a := range m.totals.accounts {
		number(int64(a.all))
		number(int64(a.on))
		number(int64(a.ready))
	}
	for _, e := range m.events {
		number(int64(e.at))
		number(int64(e.batch)<<8 | int64(e.phase))
	}
	return to
}

var errShort = errors.New("a worker's message is cut short")

// parseBatch appends the events to those of m.
func parseBatch(data []byte, m *batchMessage) error {
	if len(data) < 8*(4+3*int(phases)) || len(data)%8 != 0 {
		return errShort
	}
	number := func() (n int64) {
		n, data = int64(binary.LittleEndian.Uint64(data)), data[8:]
		return n
	}
	m.batch, m.sum, m.totals.records, m.totals.bytes = int(number()), uint32(number()), int(number()), number()
	for i := range m.totals.accounts {
		m.totals.accounts[i] = account{time.Duration(number()), time.Duration(number()), time.Duration(number())}
	}
	if len(data)%16 != 0 {
		return errShort
	}
	for len(data) > 0 {
		at, what := number(), number()
		if p := phase(what); p < phases {
			m.events = append(m.events, event{at: time.Duration(at), batch: int(what >> 8), phase: p})
		}
	}
	return nil
}

// writeMessage writes a message in one piece if the pipe has room.
func writeMessage(w io.Writer, buffer []byte, kind byte, fill func([]byte) []byte) ([]byte, error) {
	buffer = fill(append(buffer[:0], 0, 0, 0, 0, kind))
	binary.LittleEndian.PutUint32(buffer, uint32(len(buffer)-4))
	_, err := w.Write(buffer)
	return buffer, err
}

// readMessage reads a message into buffer's memory and returns it.
func readMessage(r io.Reader, buffer []byte) (kind byte, data, all []byte, err error) {
	buffer = append(buffer[:0], 0, 0, 0, 0)
	if _, err := io.ReadFull(r, buffer); err != nil {
		return 0, nil, buffer, err
	}
	n := binary.LittleEndian.Uint32(buffer)
	if n == 0 || n > maxMessage {
		return 0, nil, buffer, fmt.Errorf("a worker's message has %d bytes", n)
	}
	if cap(buffer) < int(n) {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	if _, err := io.ReadFull(r, buffer); err != nil {
		return 0, nil, buffer, err
	}
	return buffer[0], buffer[1:], buffer, nil
}
