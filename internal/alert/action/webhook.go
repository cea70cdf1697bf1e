package action

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stallspan/stallspan/internal/emit"
)

// The headers of a request. The signature is "v1=" and the hex digits of HMAC-SHA256(secret, timestamp + "." + body).
const (
	TimestampHeader = "Stallspan-Timestamp" // Unix time in seconds
	SignatureHeader = "Stallspan-Signature"
)

// Sign returns the value of SignatureHeader.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, timestamp+".") // a hash never fails
	_, _ = mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// webhook calls a Webhook.
type webhook struct {
	Webhook
	client  http.Client
	version string
}

func newWebhook(w *Webhook, version string) *webhook {
	dialer := &net.Dialer{Timeout: defaultTimeout}
	if strings.HasPrefix(strings.ToLower(w.URL), "http:") {
		dialer.Control = loopbackOnly // checks the resolved address of localhost
	}
	return &webhook{Webhook: *w, version: version, client: http.Client{
		Timeout: cmp.Or(w.Timeout, defaultTimeout),
		// Redirects are not followed: they may lead to a host that the config does not name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: defaultTimeout, MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

func loopbackOnly(_, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !isLoopback(host) {
		return errors.New("a webhook without TLS must be on loopback")
	}
	return nil
}

// maxBody bounds the part of a response's body that is kept, in bytes.
const maxBody = 256

// act posts the event once. Errors that may be temporary are retried.
func (w *webhook) act(ctx context.Context, e *emit.Event) (message string, err error) {
	body := bytes.TrimSuffix(e.JSON(), []byte("\n"))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return "", backoff.Permanent(errors.New("the url of the webhook is invalid"))
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stallspan/"+w.version)
	request.Header.Set(TimestampHeader, now)
	request.Header.Set(SignatureHeader, Sign(w.Secret, now, body))
	response, err := w.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the whole URL
		}
		return "", fmt.Errorf("not reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var text output
	_, _ = io.Copy(&text, io.LimitReader(response.Body, maxBody)) // the body only adds detail
	switch code := response.StatusCode; {
	case code < 300:
		return "HTTP status " + response.Status, nil
	case code < 400:
		err = fmt.Errorf("HTTP status %s: redirects are not followed, give the final url", response.Status)
		return "", backoff.Permanent(err)
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return "", fmt.Errorf("HTTP status %s%s", response.Status, text.suffix())
	default:
		return "", backoff.Permanent(fmt.Errorf("HTTP status %s%s", response.Status, text.suffix()))
	}
}
