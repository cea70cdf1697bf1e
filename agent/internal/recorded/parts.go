// Package recorded opens the files of a recording.
package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/stallspan/stallspan/internal/recording"
)

// Part is one file of a recording, open at its first entry.
type Part struct {
	Path   string
	file   io.Closer
	Reader *recording.Reader
}

// Open opens the files of one recording, and sorts them by the time of writing.
func Open(paths []string) (parts []*Part, err error) {
	for _, path := range paths {
		opened, err := openPart(path)
		if err != nil {
			return parts, err
		}
		parts = append(parts, opened)
	}
	slices.SortStableFunc(parts, func(a, b *Part) int {
		return cmp.Compare(a.Reader.Header().Part, b.Reader.Header().Part)
	})
	for i := 1; i < len(parts); i++ {
		before, after := parts[i-1].Reader.Header(), parts[i].Reader.Header()
		if before.ID != after.ID || before.ID == "" {
			return parts, fmt.Errorf("%s and %s belong to different recordings: replay one after the other", parts[i-1].Path,
				parts[i].Path)
		}
		if before.Part == after.Part {
			return parts, fmt.Errorf("%s and %s are the same part of a recording: leave one out", parts[i-1].Path, parts[i].Path)
		}
	}
	return parts, nil
}

func openPart(path string) (*Part, error) {
	file := os.Stdin
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("the recording %s cannot be read: %w", path, errors.Unwrap(err))
		}
		file = opened
	} else {
		path = "standard input"
	}
	reader, err := recording.NewReader(file)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Part{path, file, reader}, nil
}

// Entries returns the entries of all parts one after the other, and then io.EOF. Other errors name the part.
func Entries(parts []*Part) func(*recording.Entry) error {
	return func(e *recording.Entry) error {
		for {
			err := parts[0].Reader.Next(e)
			switch {
			case err == nil:
				return nil
			case !errors.Is(err, io.EOF):
				return fmt.Errorf("%s: %w", parts[0].Path, err)
			case len(parts) == 1:
				return io.EOF
			}
			parts = parts[1:]
		}
	}
}

// Close closes all parts.
func Close(parts []*Part) {
	for _, p := range parts {
		_ = p.file.Close()
	}
}
