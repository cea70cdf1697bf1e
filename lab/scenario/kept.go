package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	recordingEnd = ".jsonl.gz"
	resultsEnd   = ".json"
)

// keptAt returns the path of a variant's files.
func keptAt(folder string, v *Variant, end string) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%d%s", v.Name, v.Seed, end))
}

// leftovers returns the seeds whose files an earlier run may have left: this one, and the one that replaced it.
func leftovers(seed uint64) []uint64 {
	if seed%(2*MaxVariants) >= MaxVariants { // it is a replacement itself
		return []uint64{seed}
	}
	return []uint64{seed, Retry(seed)}
}

// forget removes a variant's files.
func forget(folder, name string, seed uint64) error {
	v := Variant{Name: name, Seed: seed}
	for _, end := range [...]string{recordingEnd, resultsEnd} {
		if err := os.Remove(keptAt(folder, &v, end)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ForgetAll removes what earlier runs left of the existing cases in a folder. Other files and the folder stay.
func ForgetAll(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isKept(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// isKept reports whether keptAt gives this file name to a variant of a case.
func isKept(file string) bool {
	name, ok := strings.CutSuffix(file, recordingEnd)
	if !ok {
		name, ok = strings.CutSuffix(file, resultsEnd)
	}
	at := strings.LastIndexByte(name, '-')
	if !ok || at < 0 || !slices.ContainsFunc(Cases(), func(c Case) bool { return c.Name == name[:at] }) {
		return false
	}
	seed, err := strconv.ParseUint(name[at+1:], 10, 64)
	return err == nil && strconv.FormatUint(seed, 10) == name[at+1:]
}
