package export

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

// defaultTimeout is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
const defaultTimeout = 10 * time.Second

// httpClient returns a client whose errors say whether a retry can help: the SDK's errors hide the status and
// Retry-After. With a client of ours, the SDK leaves TLS and the timeout to us.
func (s signal) httpClient() (*http.Client, error) {
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	timeout := defaultTimeout
	if value, _ := s.setting("TIMEOUT"); value != "" {
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil { // the SDK reports a wrong value
			timeout = time.Duration(ms) * time.Millisecond
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Timeout: timeout, CheckRedirect: stay, Transport: statusTransport{&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        2,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}}, nil
}

// tlsConfig returns the TLS configuration of the environment, or nil.
func (s signal) tlsConfig() (*tls.Config, error) {
	var config tls.Config
	ca, variable := s.setting("CERTIFICATE")
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM format", variable, ca)
		}
	}
	certificate, variable := s.setting("CLIENT_CERTIFICATE")
	key, _ := s.setting("CLIENT_KEY")
	if certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s and its key: %w", variable, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if config.RootCAs == nil && config.Certificates == nil {
		return nil, nil
	}
	return &config, nil
}

// statusTransport makes an error of every response that is not a success.
type statusTransport struct{ *http.Transport }

// maxBody bounds what is kept of the body of an error, in bytes.
const maxBody = 512

// RoundTrip implements http.RoundTripper.
func (t statusTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode < 300:
		if accepted, ok := request.Context().Value(acceptedKey{}).(*bool); ok {
			*accepted = true
		}
		return response, nil
	case response.StatusCode < 400: // not followed: the batch and its keys are for the configured host only
		_ = response.Body.Close()
		to := readable([]byte(response.Header.Get("Location")))
		return nil, &queue.Refusal{Items: -1, Err: fmt.Errorf("%s to %.200s: set the endpoint to where the backend is",
			response.Status, withoutUser(to))}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // the status is enough
	_ = response.Body.Close()
	return nil, classifyHTTP(response, readable(body))
}

// readable returns a body as one line of text. A protobuf body is a status message among a few other bytes.
func readable(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u007f' || r == '\ufffd' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(body), " "))
	return strings.Join(strings.Fields(text), " ")
}

// acceptedKey is the context key of a *bool that is set when the backend answers with success.
type acceptedKey struct{}

// sendHTTP is a sender. An accepted batch is never sent again: an error after a success becomes a refusal.
func sendHTTP(ctx context.Context, export func(context.Context) error) error {
	var accepted bool
	err := export(context.WithValue(ctx, acceptedKey{}, &accepted))
	var refusal *queue.Refusal
	if err == nil || !accepted || errors.As(err, &refusal) {
		return err
	}
	n, _ := rejected(err) // any other error is a response that cannot be parsed
	return &queue.Refusal{Items: n, Err: err}
}
