package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/stallspan/stallspan/internal/page"
)

// Bridge shows the page of a server on a unix socket to this user's browser, which cannot open sockets. It listens on
// loopback. A random key keeps the other users of this machine out: the server knows who opened the socket, and a port
// does not.
type Bridge struct {
	client *Client
	key    string
	http   http.Server
}

// maxBridged is the limit of connections to a bridge.
const maxBridged = 32

// NewBridge returns a bridge to the server of a client.
func NewBridge(c *Client) *Bridge {
	b := &Bridge{client: c, key: rand.Text()}
	b.http = http.Server{Handler: handler(b.serve), ReadHeaderTimeout: readTimeout, MaxHeaderBytes: maxHeader}
	return b
}

// Address is the address of the page, with the key.
func (b *Bridge) Address(l net.Listener) string {
	return fmt.Sprintf("http://%s/#token=%s", l.Addr(), b.key)
}

// Serve serves until ctx ends. It closes the listener.
func (b *Bridge) Serve(ctx context.Context, l net.Listener) error {
	b.http.BaseContext = func(net.Listener) context.Context { return ctx } // streams end with it
	served := make(chan error, 1)
	own := func(net.Conn) caller { return caller{} } // who has the key
	go func() { served <- b.http.Serve(newListener(l, maxBridged, own)) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if b.http.Shutdown(ending) != nil {
		_ = b.http.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (b *Bridge) serve(w http.ResponseWriter, r *http.Request) error {
	switch {
	case !IsLocal(r.Host):
		return refuse(http.StatusForbidden, "this port is for this machine's browser: use localhost, not %s", excerpt(r.Host))
	case isShell(r):
		return shell(w, hostname(""))
	case !isData(r):
		return refuse(http.StatusNotFound, "there is no %s: this port shows a page", excerpt(r.URL.Path))
	case !mayView(r):
		return refuse(http.StatusForbidden, "requests from pages of other sites are refused")
	case !bears(r, []byte(b.key)):
		return refuse(http.StatusUnauthorized, "open the whole address that stallspan page has printed")
	}
	return b.pass(w, r)
}

// pass sends a request on, and its response back as it comes.
func (b *Bridge) pass(w http.ResponseWriter, r *http.Request) error {
	request, err := b.client.request(r.Context(), http.MethodGet, r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return err
	}
	endless := http.Client{Transport: b.client.http.Transport}
	response, err := endless.Do(request)
	if err != nil {
		return refuse(http.StatusBadGateway, "%v", b.client.explain(err))
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(response.StatusCode)
	control := http.NewResponseController(w)
	part := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(part)
		if n > 0 {
			if control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
				return nil
			}
			if _, gone := w.Write(part[:n]); gone != nil || control.Flush() != nil {
				return nil
			}
		}
		if err != nil {
			return nil
		}
	}
}

// shell sends a page that asks for its data. It holds nothing of the machine but a title.
func shell(w http.ResponseWriter, title string) error {
	var text bytes.Buffer
	if err := page.WriteLive(&text, title); err != nil {
		return err
	}
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", page.LivePolicy()+"; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	_, _ = w.Write(text.Bytes())
	return nil
}
