package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/windows"
)

// Error is the response to a request that was refused: what happened and what to do, in one line.
type Error struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
}

func (e *Error) Error() string { return e.Text }

func refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// asError returns an error of Windows with its HTTP status. fallback is the status of errors without one.
func asError(err error, fallback int) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, windows.ErrTooMany), errors.Is(err, windows.ErrShare):
		return &Error{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, windows.ErrUnknown):
		return &Error{http.StatusNotFound, err.Error()}
	}
	return &Error{fallback, err.Error()}
}

// bodyError returns the response to a body that could not be read.
func bodyError(err error) *Error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: shorten it", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the request did not arrive within %v: send it again", readTimeout)
	}
	return refuse(http.StatusBadRequest, "the body ended early, send it again: %v", err)
}

// excerpt quotes at most 60 bytes of a text from a client.
func excerpt(text string) string {
	const limit = 60
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
