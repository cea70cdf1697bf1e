package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// mostLine bounds a line of a stream, in bytes.
const mostLine = 256 << 10

// stream gives the lines of an answer to take as they come. It is nil when the server has ended it.
func (c *Client) stream(ctx context.Context, path string, take func(line []byte) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return err
	}
	endless := http.Client{Transport: c.http.Transport}
	response, err := endless.Do(request)
	if err != nil {
		return c.explain(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(response.Body, mostReport)) // as much as came explains it
		refused := &Error{Status: response.StatusCode}
		if err := json.Unmarshal(answer, refused); err != nil || refused.Text == "" {
			return c.foreign(answer)
		}
		return refused
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		if !json.Valid(lines.Bytes()) {
			return c.foreign(lines.Bytes())
		}
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return c.explain(err)
	}
	return nil
}
