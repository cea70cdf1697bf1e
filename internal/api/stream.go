package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxLine is the limit of a line of a stream, in bytes.
const maxLine = 256 << 10

// stream calls take with each line of a response. It returns nil when the server ends the response.
func (c *Client) stream(ctx context.Context, path string, take func(line []byte) error) error {
	request, err := c.request(ctx, http.MethodGet, path, http.NoBody)
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
		answer, _ := io.ReadAll(io.LimitReader(response.Body, maxReport)) // a part is enough for an error
		refused := &Error{Status: response.StatusCode}
		if err := json.Unmarshal(answer, refused); err != nil || refused.Text == "" {
			return c.foreign(answer)
		}
		return refused
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxLine)
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
