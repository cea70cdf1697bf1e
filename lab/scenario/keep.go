//go:build linux

package scenario

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
)

// kept is the recording of a variant while it is written.
type kept struct {
	*recording.Writer
	file *os.File
}

func keepRecording(folder string, v *Variant) (*kept, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, old := range leftovers(v.Seed) { // else a replay would mix both runs
		if err := forget(folder, v.Name, old); err != nil {
			return nil, err
		}
	}
	file, err := os.Create(keptAt(folder, v, recordingEnd))
	if err != nil {
		return nil, err
	}
	w, err := recording.NewWriter(file, recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, ""))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &kept{w, file}, nil
}

func (k *kept) close() error { return errors.Join(k.Close(), k.file.Close()) }

// saveResults writes a variant's results next to its recording.
func saveResults(folder string, v *Variant, results []*Result) error {
	return WriteJSON(keptAt(folder, v, resultsEnd), results)
}

// WriteJSON writes v to a file, indented.
func WriteJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
