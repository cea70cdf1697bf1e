package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/trust"
)

// Client is a client of a server. It is safe for concurrent use.
type Client struct {
	path  string // of the socket, or the address of the port
	host  string // of requests
	token string // over TCP; "" for none
	http  http.Client
}

// Limits of a Client.
const (
	maxReport   = 1 << 20 // bytes of a response
	maxID       = 64      // bytes of a window's id
	callTimeout = 20 * time.Second
)

// NewClient returns a client of the server at path. Each call opens a new connection.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return trust.Dial(ctx, path) }
	return newClient(path, "localhost", "", dial)
}

// newTCPClient returns a client of the server at an address.
func newTCPClient(address string, token []byte) *Client {
	return newClient(address, address, string(token), new(net.Dialer).DialContext)
}

func newClient(path, host, token string, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}
	return &Client{path: path, host: host, token: token, http: http.Client{Transport: transport, Timeout: callTimeout,
		// Redirects are not followed: the token is for this server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Server returns the path of the server's socket, or the address of its port.
func (c *Client) Server() string { return c.path }

// Local reports whether the server is on a unix socket. Only there it knows the caller.
func (c *Client) Local() bool { return c.host != c.path }

// request returns a request to the server.
func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+path, body)
	if err == nil && c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return request, err
}

// Begin opens a window. The error is an *Error if the server refused it.
func (c *Client) Begin(ctx context.Context, a Announcement) (Begun, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return Begun{}, err
	}
	answer, err := c.post(ctx, "/v1/windows", body)
	if err != nil {
		return Begun{}, err
	}
	var begun Begun
	if err := json.Unmarshal(answer, &begun); err != nil || !isID(begun.ID) {
		return Begun{}, c.foreign(answer)
	}
	return begun, nil
}

// isID reports whether a text can be a window's id. It is printed, and may come from a server of another version.
func isID(text string) bool {
	return text != "" && len(text) <= maxID && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// End closes a window and returns its report as JSON. The error is an *Error if the server refused it.
func (c *Client) End(ctx context.Context, id string) (report []byte, err error) {
	return c.end(ctx, id, nil)
}

// Fail is End for a window that failed. It counts as unfinished, and baselines do not learn from it.
func (c *Client) Fail(ctx context.Context, id string) (report []byte, err error) {
	return c.end(ctx, id, []byte(`{"failed":true}`))
}

func (c *Client) end(ctx context.Context, id string, body []byte) (report []byte, err error) {
	report, err = c.post(ctx, "/v1/windows/"+url.PathEscape(id)+"/end", body)
	if err == nil && !json.Valid(report) {
		return nil, c.foreign(report)
	}
	return report, err
}

// Status returns the status of the server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	answer, err := c.call(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return Status{}, err
	}
	var status Status
	if err := json.Unmarshal(answer, &status); err != nil || status.Version == "" {
		return Status{}, c.foreign(answer)
	}
	return status, nil
}

func (c *Client) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	return c.call(ctx, http.MethodPost, path, body)
}

func (c *Client) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.limited(ctx, method, path, body, maxReport)
}

// limited is call with a maximum size of the response, in bytes. More than that is cut.
func (c *Client) limited(ctx context.Context, method, path string, body []byte, most int64) ([]byte, error) {
	request, err := c.request(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.explain(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return nil, c.explain(err)
	}
	if response.StatusCode/100 == 2 {
		return answer, nil
	}
	refused := &Error{Status: response.StatusCode}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Text == "" {
		return nil, c.foreign(answer)
	}
	return nil, refused
}

func (c *Client) explain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which is a placeholder
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no server answers on %s: start stallspan, or set %s to another socket: %w",
			c.path, SocketVariable, err)
	}
	return fmt.Errorf("no response on %s: %w", c.path, err)
}

func (c *Client) foreign(answer []byte) error {
	return fmt.Errorf("the server on %s is not stallspan, set %s to another path: it sent %s", c.path, SocketVariable,
		excerpt(strings.TrimSpace(string(answer))))
}
