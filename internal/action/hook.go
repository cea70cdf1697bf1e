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

	"github.com/stallspan/stallspan/internal/notice"
)

// The headers of a request. The signature is "v1=" and the hex digits of the HMAC-SHA256, by the secret, of the timestamp,
// a dot and the body.
const (
	TimestampHeader = "Stallspan-Timestamp" // Unix time in seconds
	SignatureHeader = "Stallspan-Signature"
)

// Sign gives the value of SignatureHeader.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, timestamp+".") // never fails, as its package says
	_, _ = mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// hook does what a Webhook says.
type hook struct {
	Webhook
	client  http.Client
	version string
}

func newHook(w *Webhook, version string) *hook {
	dialer := &net.Dialer{Timeout: defaultTimeout}
	if strings.HasPrefix(strings.ToLower(w.URL), "http:") {
		dialer.Control = onlyLoopback // whatever localhost may be resolved to
	}
	return &hook{Webhook: *w, version: version, client: http.Client{
		Timeout: cmp.Or(w.Timeout, defaultTimeout),
		// A redirect is not followed: it may lead to where the config does not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: defaultTimeout, MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !loopback(host) {
		return errors.New("without TLS, a webhook is called on loopback alone")
	}
	return nil
}

// mostAnswer bounds what is kept of an answer that explains itself, in bytes.
const mostAnswer = 256

// act posts the event once.
func (h *hook) act(ctx context.Context, n *notice.Notice) (says string, again bool, err error) {
	body := bytes.TrimSuffix(n.JSON(), []byte("\n"))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return "", false, errors.New("the url of the webhook cannot be used")
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stallspan/"+h.version)
	request.Header.Set(TimestampHeader, now)
	request.Header.Set(SignatureHeader, Sign(h.Secret, now, body))
	response, err := h.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // its own words show the whole address
		}
		return "", true, fmt.Errorf("it was not reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var told said
	_, _ = io.Copy(&told, io.LimitReader(response.Body, mostAnswer)) // without it the status has to do
	switch code := response.StatusCode; {
	case code < 300:
		return "it answered " + response.Status, false, nil
	case code < 400:
		return "", false, fmt.Errorf("it answered %s, which is not followed: give the address that it leads to", response.Status)
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return "", true, fmt.Errorf("it answered %s%s", response.Status, told.words())
	default:
		return "", false, fmt.Errorf("it answered %s%s", response.Status, told.words())
	}
}
