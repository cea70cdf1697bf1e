package reports

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
)

// startLength is how much of an old file is looked at, in bytes.
const startLength = 4096

// ownFiles are the begins of the files that this program writes, by flag.
var ownFiles = map[string]*regexp.Regexp{
	"--report":   regexp.MustCompile(`^\s*\{\s*"(program|run|windows)":`),
	"--html":     regexp.MustCompile(`(?s)^<!DOCTYPE html>.*Stallspan`),
	"--markdown": regexp.MustCompile(`(?s)^\*\*.*\nA is .*, and B is `),
	"--perfetto": regexp.MustCompile(`(?s)^\n.P\x01h`), // a packet with its sequence: a text has no such byte
}

// mayReplace returns an error for a file that is not empty and not of the kind that a flag writes: a wrong name must
// not cost a file. A second run with the same flags replaces the output of the first one.
func mayReplace(flag, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return nil // it does not exist, or cannot be read: the folder's rights decide
	}
	defer func() { _ = file.Close() }()
	start, err := io.ReadAll(io.LimitReader(file, startLength))
	if err != nil || len(bytes.TrimSpace(start)) == 0 {
		return nil
	}
	if kind := ownFiles[flag]; kind != nil && !kind.Match(start) {
		return fmt.Errorf("%s %s exists and is no such file of Stallspan: give another name, or remove it", flag, path)
	}
	return nil
}
