package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Exit codes, as docs/commands.md lists them. A wrapped program's own code passes through untouched.
const (
	exitFailed      = 1   // a command other than run failed
	exitUsage       = 2   // the command line or the config is wrong
	exitSlow        = 3   // run --fail-on slow: the program succeeded, a window was slow
	exitFailing     = 3   // health: a disk is failing, has failed or vanished
	exitRun         = 125 // run failed by itself, before or after the program
	exitCannotRun   = 126 // the program was found and could not be started
	exitNotFound    = 127 // the program was not found
	exitSignalBase  = 128 // plus the signal that ended the program
	exitInterrupted = exitSignalBase + 2
)

// exitError ends a command with an exit code. Main prints err; without one it prints nothing.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usagef is an error in the command line or the config.
func usagef(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return exitError{exitUsage, err}
}

// exitCode returns the exit code that err leads to, and the error to print. Cobra's own errors concern the command
// line; started reports whether the command has begun its work.
func exitCode(err error, started bool) (code int, message error) {
	var e exitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &e):
		return e.code, e.err
	case started:
		return exitFailed, err
	default:
		return exitUsage, err
	}
}

// say writes one line for a person. Standard output belongs to data and to the wrapped program. Names and errors come
// from other programs, so nothing in the line may change the terminal.
func say(format string, args ...any) {
	line := "stallspan: " + printable(fmt.Sprintf(format, args...))
	if screen := screenOf(os.Stderr); screen.Terminal() && columns(line) > screen.Width() {
		line = strings.Join(wrapText(line, screen.Width()), "\n")
	}
	_, _ = fmt.Fprintln(os.Stderr, line)
}

// warn reports a problem that the work goes on with.
func warn(problem error) { say("warning: %v", problem) }

// sayAll prints what went wrong, and returns the exit code for it.
func sayAll(errs ...error) (failed error) {
	for _, err := range errs {
		if err != nil {
			say("%v", err)
			failed = exitError{code: exitFailed}
		}
	}
	return failed
}
