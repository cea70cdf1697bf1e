package check

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
)

// reason is an error without the path and the operation, which the sentence names.
func reason(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.As(err, &no):
		return no.Error()
	default:
		return err.Error()
	}
}

// plain are texts that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
