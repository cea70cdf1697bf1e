package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/stallspan/stallspan/internal/recording"
)

// part is one file of a recording, open at its first entry.
type part struct {
	path   string
	file   io.Closer
	reader *recording.Reader
}

// openParts opens the files of one recording, and sorts them by the time of writing.
func openParts(paths []string) (parts []*part, err error) {
	for _, path := range paths {
		opened, err := openPart(path)
		if err != nil {
			return parts, err
		}
		parts = append(parts, opened)
	}
	slices.SortStableFunc(parts, func(a, b *part) int {
		return cmp.Compare(a.reader.Header().Part, b.reader.Header().Part)
	})
	for i := 1; i < len(parts); i++ {
		before, after := parts[i-1].reader.Header(), parts[i].reader.Header()
		if before.ID != after.ID || before.ID == "" {
			return parts, fmt.Errorf("%s and %s belong to different recordings: replay one after the other", parts[i-1].path,
				parts[i].path)
		}
		if before.Part == after.Part {
			return parts, fmt.Errorf("%s and %s are the same part of a recording: leave one out", parts[i-1].path, parts[i].path)
		}
	}
	return parts, nil
}

func openPart(path string) (*part, error) {
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
	return &part{path, file, reader}, nil
}

func closeParts(parts []*part) {
	for _, p := range parts {
		_ = p.file.Close()
	}
}
