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
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
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

// open returns the body of a response that may take long. The caller closes it.
func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := c.request(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	endless := http.Client{Transport: c.http.Transport, CheckRedirect: c.http.CheckRedirect}
	response, err := endless.Do(request)
	if err != nil {
		return nil, c.explain(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxReport)) // a part is enough for an error
	refused := &Error{Status: response.StatusCode}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Text == "" {
		return nil, c.foreign(answer)
	}
	return nil, refused
}
