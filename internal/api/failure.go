package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/windows"
)

// Error is a request that was refused: the HTTP status, and one line that says what happened and what to do.
type Error struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
}

func (e *Error) Error() string { return e.Text }

func refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// asError finds the status of an error from the door; usual is that of one that names none.
func asError(err error, usual int) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, windows.ErrTooMany):
		return &Error{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, windows.ErrUnknown):
		return &Error{http.StatusNotFound, err.Error()}
	}
	return &Error{usual, err.Error()}
}

// unread explains a body that did not arrive whole.
func unread(err error) *Error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: shorten it", mostBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the request did not arrive whole within %v: send it again", readTimeout)
	}
	return refuse(http.StatusBadRequest, "the body ended early, send it again: %v", err)
}

// excerpt quotes text that a client sent, at most 60 bytes of it.
func excerpt(text string) string {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
