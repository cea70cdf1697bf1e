package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/trust"
)

// Exit codes, as docs/commands.md lists them. A wrapped program's own code passes through untouched.
const (
	ExitFailed      = 1   // a command other than run failed
	ExitUsage       = 2   // the command line or the config is wrong
	ExitSlow        = 3   // run --fail-on slow: the program succeeded, a window was slow
	ExitFailing     = 3   // health: a disk is failing, has failed or vanished
	ExitRun         = 125 // run failed by itself, before or after the program
	ExitCannotRun   = 126 // the program was found and could not be started
	ExitNotFound    = 127 // the program was not found
	ExitSignalBase  = 128 // plus the signal that ended the program
	ExitInterrupted = ExitSignalBase + 2
)

// ExitError ends a command with an exit code. Main prints err; without one it prints nothing.
type ExitError struct {
	Code int
	Err  error
}

// Error is of error.
func (e ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is of package errors.
func (e ExitError) Unwrap() error { return e.Err }

// Usagef is an error in the command line or the config.
func Usagef(format string, args ...any) error {
	return ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// Usage makes err one in the command line or the config.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return ExitError{ExitUsage, err}
}

// ExitCode returns the exit code that err leads to, and the error to print. Cobra's own errors concern the command
// line; started reports whether the command has begun its work.
func ExitCode(err error, started bool) (code int, message error) {
	var e ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &e):
		return e.Code, e.Err
	case started:
		return ExitFailed, err
	default:
		return ExitUsage, err
	}
}

// Say writes one line for a person. Standard output belongs to data and to the wrapped program. Names and errors come
// from other programs, so nothing in the line may change the terminal.
func Say(format string, args ...any) {
	line := "stallspan: " + output.Printable(fmt.Sprintf(format, args...))
	if screen := output.ScreenOf(os.Stderr); screen.Terminal() && output.Columns(line) > screen.Width() {
		line = strings.Join(output.WrapText(line, screen.Width()), "\n")
	}
	_, _ = fmt.Fprintln(os.Stderr, line)
}

// Warn reports a problem that the work goes on with.
func Warn(problem error) { Say("warning: %v", problem) }

// SayAll prints what went wrong, and returns the exit code for it.
func SayAll(errs ...error) (failed error) {
	for _, err := range errs {
		if err != nil {
			Say("%v", err)
			failed = ExitError{Code: ExitFailed}
		}
	}
	return failed
}

// NotIgnored returns signals without those that the parent process ignores, as nohup does. Notify would stop ignoring
// them, in this process and in the program that it starts.
func NotIgnored(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

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
