package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/trust"
)

// Unserved reports whether an error means that no process serves a socket.
func Unserved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// Unanswered adds what to do when the API cannot be reached. A refusal by the API explains itself.
func Unanswered(client *api.Client, err error) error {
	path := client.Server()
	var refused *api.Error
	switch {
	case err == nil, errors.As(err, &refused):
		return err
	case Unserved(err):
		return fmt.Errorf("no agent answers at %s: start stallspan agent or a Collector with the receiver stallspan, "+
			"or set %s to its socket", path, api.SocketVariable)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s, or set %s to another path", trust.Refused(path), api.SocketVariable)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent at %s did not answer in time: check whether it hangs", path)
	}
	return err
}
