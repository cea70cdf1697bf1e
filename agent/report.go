package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// document is a report in JSON, as docs/report.md describes it.
type document struct {
	Run      *window.Report   `json:"run,omitempty"`
	Windows  []*window.Report `json:"windows"`
	Problems []string         `json:"problems,omitempty"` // what could not be seen, in words

	PredictedSpeedup *float64 `json:"predicted_speedup,omitempty"` // demo only
	MeasuredSpeedup  *float64 `json:"measured_speedup,omitempty"`
}

// reportFile is where a report will be written. It is opened before the program starts, so that a wrong path costs a
// second and not a night, and takes its name when it is complete.
type reportFile struct {
	path string
	file *os.File // a temporary file beside path; nil where no report was asked for
}

func openReport(path string) (*reportFile, error) {
	if path == "" {
		return &reportFile{}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // a pipe or /dev/stdout: there is nothing to rename
		if err != nil {
			return nil, fmt.Errorf("--report %s cannot be written: %w", path, err)
		}
		return &reportFile{file: file}, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".stallspan-report-*")
	if err != nil {
		return nil, fmt.Errorf("--report %s cannot be written, name a file in a folder that exists and is yours: %w", path, err)
	}
	return &reportFile{path: path, file: file}, nil
}

// save writes the report. When its disk is full it goes to the folder for temporary files, and the error says where.
func (f *reportFile) save(d document) error {
	if f.file == nil {
		return nil
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
	text = append(text, '\n')
	if err := f.write(text); err != nil {
		spare := filepath.Join(os.TempDir(), fmt.Sprintf("stallspan-report-%d.json", os.Getpid()))
		if os.WriteFile(spare, text, 0o600) != nil {
			return fmt.Errorf("the report could not be written, free some space: %w", err)
		}
		return fmt.Errorf("the report could not be written to its place and is in %s: %w", spare, err)
	}
	return nil
}

func (f *reportFile) write(text []byte) error {
	if _, err := f.file.Write(text); err != nil {
		return err
	}
	if f.path == "" {
		return f.file.Close()
	}
	if err := f.file.Chmod(0o644); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		return err
	}
	f.file = nil
	return nil
}

// discard removes what was not saved.
func (f *reportFile) discard() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	if f.path != "" {
		_ = os.Remove(f.file.Name())
	}
}

func texts(problems []error) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Error())
	}
	return list
}

// sortReports puts them in the order in which their windows began; of two that began together the longer comes first.
func sortReports(reports []*window.Report) {
	slices.SortStableFunc(reports, func(a, b *window.Report) int {
		if a.Start.Mono != b.Start.Mono {
			return int(a.Start.Mono - b.Start.Mono)
		}
		return int(b.End.Mono - a.End.Mono)
	})
}
