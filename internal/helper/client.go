package helper

import "github.com/stallspan/stallspan/internal/source/process"

// Client asks the helper that reads. It implements process.Reader.
type Client struct{ *connection }

// reads is what the helper does.
const reads = "that reads other users' processes"

// ask sends a question and returns the content of its answer, which has the error of the helper.
func (c *Client) ask(q question) (content, error) {
	a, err := c.connection.ask(&q, answerWait)
	if err == nil && a.failed != 0 {
		err = a.failed
	}
	return a.content, err
}

// Bytes implements process.Reader. A large list is asked for in parts, so that others need not wait for all.
func (c *Client) Bytes(of []process.Key, into []process.Bytes) error {
	for len(of) > 0 {
		n := min(len(of), maxKeys)
		a, err := c.ask(question{op: opBytes, keys: of[:n]})
		if err != nil {
			return err
		}
		if copy(into[:n], a.bytes) < n || len(a.bytes) > n {
			return c.errAnswer()
		}
		of, into = of[n:], into[n:]
	}
	return nil
}

// Files implements process.Reader.
func (c *Client) Files(of process.Key, from, limit int) (list []process.OpenFile, files int, err error) {
	a, err := c.ask(question{op: opFiles, keys: []process.Key{of}, from: from, limit: min(limit, maxOpenFiles)})
	return a.open, a.files, err
}

// SameProgram implements process.Reader.
func (c *Client) SameProgram(one, other process.Key) (bool, error) {
	a, err := c.ask(question{op: opSame, keys: []process.Key{one, other}})
	return a.yes, err
}

// ModelFiles implements process.Reader. It returns files of models only, as many as an answer holds.
func (c *Client) ModelFiles(of process.Key, want process.FilesWanted) (process.Files, error) {
	a, err := c.ask(question{op: opModels, keys: []process.Key{of}, models: want})
	return a.models, err
}

// HasDevice implements process.Reader.
func (c *Client) HasDevice(of process.Key, device uint64) (open bool, files int, err error) {
	a, err := c.ask(question{op: opDevice, keys: []process.Key{of}, device: device})
	return a.yes, a.files, err
}
