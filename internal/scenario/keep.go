//go:build linux

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	for _, old := range leftovers(v.Seed) { // a replay would count an earlier run's with this one's
		was := Variant{Name: v.Name, Seed: old}
		for _, end := range [...]string{recordingEnd, resultsEnd} {
			if err := os.Remove(keptAt(folder, &was, end)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
	}
	file, err := os.Create(keptAt(folder, v, recordingEnd))
	if err != nil {
		return nil, err
	}
	w, err := recording.NewWriter(file, recording.ThisMachine(monitor.Boot(""), monitor.DefaultInterval, ""))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &kept{w, file}, nil
}

// leftovers are the seeds whose files an earlier run may have left: this one, and what was then run in its place.
func leftovers(seed uint64) []uint64 {
	if seed%(2*MostVariants) >= MostVariants { // it is in another's place itself
		return []uint64{seed}
	}
	return []uint64{seed, Retry(seed)}
}

func (k *kept) close() error { return errors.Join(k.Close(), k.file.Close()) }

const (
	recordingEnd = ".jsonl.gz"
	resultsEnd   = ".json"
)

// keptAt is where what is kept of a variant lies.
func keptAt(folder string, v *Variant, end string) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%d%s", v.Name, v.Seed, end))
}

// saveResults writes a variant's results beside its recording.
func saveResults(folder string, v *Variant, results []*Result) error {
	return WriteJSON(keptAt(folder, v, resultsEnd), results)
}

// WriteJSON writes v to a file, for people to read, too.
func WriteJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
