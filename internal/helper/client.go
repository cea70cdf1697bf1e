package helper

import (
	"syscall"

	"github.com/stallspan/stallspan/internal/source/process"
)

// Client asks the helper that reads. It implements process.Reader.
type Client struct{ *connection }

// reads is what the helper does.
const reads = "that reads other users' processes"

// ask sends a question and returns the content of its answer.
func (c *Client) ask(q *question) ([]byte, error) {
	a, err := c.connection.ask(q.op, func(number uint32) []byte {
		q.number = number
		return q.append(make([]byte, 0, maxQuestion))
	}, answerWait)
	return a.body, err
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
			return c.errAnswer()
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
	return list, files, c.failure(failed, err)
}

// SameProgram implements process.Reader.
func (c *Client) SameProgram(one, other process.Key) (bool, error) {
	body, err := c.ask(&question{op: opSame, keys: []process.Key{one, other}})
	if err != nil {
		return false, err
	}
	same, failed, err := parseSame(body)
	return same, c.failure(failed, err)
}

// ModelFiles implements process.Reader. It returns files of models only, as many as an answer holds.
func (c *Client) ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error) {
	body, err := c.ask(&question{op: opModels, keys: []process.Key{of}, models: want})
	if err != nil {
		return process.Files{}, err
	}
	all, failed, err := parseModels(body)
	return all, c.failure(failed, err)
}

// HasDevice implements process.Reader.
func (c *Client) HasDevice(of process.Key, device uint64) (open bool, files int, err error) {
	body, err := c.ask(&question{op: opDevice, keys: []process.Key{of}, device: device})
	if err != nil {
		return false, 0, err
	}
	open, files, failed, err := parseDevice(body)
	return open, files, c.failure(failed, err)
}

// failure returns the error of an answer: of its format, or the one in it.
func (c *Client) failure(number syscall.Errno, err error) error {
	switch {
	case err != nil:
		return c.errAnswer()
	case number != 0:
		return number
	}
	return nil
}
