package api

import (
	"bufio"
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
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
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
	maxAnswer   = 64 << 20 // bytes of a response: 4,096 open windows and those of an hour
	maxID       = 64       // bytes of a window's id
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
	return ask(ctx, c, http.MethodPost, "/v1/windows", a, func(b *Begun) bool { return isID(b.ID) })
}

// isID reports whether a text can be a window's id. It is printed, and may come from a server of another version.
func isID(text string) bool {
	return text != "" && len(text) <= maxID && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// End closes a window and returns its report as JSON. The error is an *Error if the server refused it.
func (c *Client) End(ctx context.Context, id string) (report []byte, err error) {
	return c.end(ctx, id, nil)
}

// Cut is End for a window that did not end by itself. Baselines do not learn from it.
func (c *Client) Cut(ctx context.Context, id string, how window.Outcome) (report []byte, err error) {
	return c.end(ctx, id, endingBody{Failed: how.Failed, Ended: how.Ended})
}

func (c *Client) end(ctx context.Context, id string, body any) (report []byte, err error) {
	path := "/v1/windows/" + url.PathEscape(id) + "/end"
	return ask(ctx, c, http.MethodPost, path, body, func(*json.RawMessage) bool { return true })
}

// Status returns the status of the server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask(ctx, c, http.MethodGet, "/v1/status", nil, func(s *Status) bool { return s.Version != "" })
}

// Listing is all windows that a server knows.
type Listing struct {
	Running []*explain.Report `json:"running"` // with their ledgers so far
	Ended   []*explain.Report `json:"ended"`   // reported within the last hour
}

// Windows returns the open windows, and those that were reported within the last hour.
func (c *Client) Windows(ctx context.Context) (Listing, error) {
	return ask(ctx, c, http.MethodGet, "/v1/windows", nil, func(l *Listing) bool {
		return l.Running != nil && l.Ended != nil
	})
}

// ask sends a request and decodes its response. complete reports whether a response is one of this API.
func ask[T any](
	ctx context.Context, c *Client, method, path string, body any, complete func(*T) bool,
) (decoded T, err error) {
	answer, err := c.call(ctx, method, path, body)
	if err != nil {
		return decoded, err
	}
	if err := json.Unmarshal(answer, &decoded); err != nil || !complete(&decoded) {
		return *new(T), c.foreign(answer)
	}
	return decoded, nil
}

// call sends a request with a body as JSON, nil for none, and returns the response.
func (c *Client) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	response, err := c.send(ctx, &c.http, method, path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return c.readAll(response)
}

// readAll reads a response. More than maxAnswer is cut.
func (c *Client) readAll(response *http.Response) ([]byte, error) {
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, c.explain(err)
	}
	return answer, nil
}

// send sends a request and returns the response, which the caller closes. The error is an *Error if the server refused
// it.
func (c *Client) send(
	ctx context.Context, by *http.Client, method, path string, body io.Reader,
) (*http.Response, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := by.Do(request)
	if err != nil {
		return nil, c.explain(err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := c.readAll(response)
	if err != nil {
		return nil, err
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
	endless := http.Client{Transport: c.http.Transport, CheckRedirect: c.http.CheckRedirect}
	response, err := c.send(ctx, &endless, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Variables of a client that reaches its server over TCP.
const (
	EndpointVariable = "STALLSPAN_ENDPOINT"   // host:port
	TokenVariable    = "STALLSPAN_TOKEN_FILE" //nolint:gosec // no token, but the variable that names its file
)

// minToken is the least length of a token, in bytes.
const minToken = 16

// ReadToken reads the token of a server on TCP from a file. It is nil
// without a file. setting is what the user calls the file.
func ReadToken(setting, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	token, err := trust.Secret(setting, path)
	switch {
	case err != nil:
		return nil, err
	case len(token) < minToken:
		return nil, fmt.Errorf("%s %s has %d characters: write at least %d there, as openssl rand -hex 32 does", setting,
			path, len(token), minToken)
	case strings.Trim(string(token), tokenCharacters) != "":
		return nil, fmt.Errorf("%s %s has other characters than letters, digits and -._~+/=: choose another text", setting,
			path)
	}
	return token, nil
}

// tokenCharacters may be in a token (RFC 6750, section 2.1).
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// Requiring makes the server refuse requests over TCP without a token. Who has it has the rights of the server's user.
// Call it before Serve.
func (s *Server) Requiring(token []byte) *Server {
	s.token = token
	return s
}

// FromEnvironment returns a client of the server that the environment names: on a unix socket, or else on TCP.
func FromEnvironment() (*Client, error) {
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" || os.Getenv(SocketVariable) != "" { // within run, its socket
		return NewClient(ClientSocket()), nil
	}
	address, err := Endpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EndpointVariable, err)
	}
	token, err := ReadToken(TokenVariable, os.Getenv(TokenVariable))
	if err != nil {
		return nil, err
	}
	return newTCPClient(address, token), nil
}
