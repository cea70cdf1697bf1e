// Package reports writes what a command found out about windows: its table, and the files of --report, --html and
// --perfetto.
package reports

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/stallspan/stallspan/agent/internal/heir"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Document is a report in JSON, as docs/report.md describes it.
type Document struct {
	Program *ProgramDocument `json:"program,omitempty"` // run only
	explain.Document
	Problems []string `json:"problems,omitempty"` // what could not be read

	PredictedSpeedup *float64 `json:"predicted_speedup,omitempty"` // demo only
	MeasuredSpeedup  *float64 `json:"measured_speedup,omitempty"`
}

// ProgramDocument is the program that run has wrapped.
type ProgramDocument struct {
	Command []string          `json:"command"`
	Code    int               `json:"exit_code"`
	Ended   string            `json:"ended,omitempty"` // how, if it failed or was ended
	Host    string            `json:"host,omitempty"`
	Version string            `json:"stallspan_version"`
	Schema  string            `json:"schema_url"`
	GPUs    map[string]string `json:"gpu_names,omitempty"` // by id
}

// NewDocument is the report of windows. run may be nil.
func NewDocument(run *window.Report, windows []*window.Report, problems []error) Document {
	d := Document{Document: explain.Document{Windows: []*explain.Report{}}}
	for _, p := range problems {
		d.Problems = append(d.Problems, p.Error())
	}
	if run != nil {
		d.Run = explain.NewReport(run)
	}
	for _, r := range windows {
		d.Windows = append(d.Windows, explain.NewReport(r))
	}
	return d
}

// ReportFile is where a report will be written. It is opened before the program starts, so that a wrong path is found
// at once and not after a night of training. It gets its name when it is complete.
type ReportFile struct {
	path string   // empty if there is nothing to rename: a pipe, a device, our own output
	file *os.File // a temporary file in the folder of path; nil without a path, and after save
}

// OpenReport opens the file of --report.
func OpenReport(path string) (*ReportFile, error) { return OpenOutput("--report", path) }

// OpenOutput opens the file that a flag names. Without a path, the result is a file that is never written.
func OpenOutput(flag, path string) (*ReportFile, error) {
	if path == "" {
		return &ReportFile{}, nil
	}
	if path == "-" {
		return nil, fmt.Errorf("%s -: give a file, or /dev/stdout", flag)
	}
	if info, err := os.Stat(path); err == nil {
		for _, own := range []*os.File{os.Stdout, os.Stderr} { // /dev/stdout, whether it is a pipe or a file
			if ours, err := own.Stat(); err == nil && os.SameFile(info, ours) {
				return &ReportFile{file: own}, nil
			}
		}
	}
	target, err := trust.Follow(path) // so that a symbolic link stays one
	if err != nil {
		return nil, fmt.Errorf("%s %s cannot be written: %w", flag, path, Reason(err))
	}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil, fmt.Errorf("%s %s is a folder: give a file in it", flag, path)
		}
		if !info.Mode().IsRegular() {
			file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe without a reader is refused
			if err != nil {
				return nil, fmt.Errorf("%s %s cannot be written: %w", flag, path, Reason(err))
			}
			return &ReportFile{file: file}, nil
		}
		if err := mayReplace(flag, path); err != nil {
			return nil, err
		}
	}
	draft := filepath.Join(filepath.Dir(target), ".stallspan-report-"+rand.Text())
	file, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s %s cannot be written, give a file in a folder that you may write to: %w", flag, path,
			Reason(err))
	}
	state.LikeOld(file, target)
	return &ReportFile{path: target, file: file}, nil
}

// Reason is err without the file's name: it may be that of a temporary file.
func Reason(err error) error {
	var wrapped *os.PathError
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// Save writes the report. If its disk is full, the report goes to the folder for temporary files, and the error names
// it.
func (f *ReportFile) Save(d Document) error {
	if f.file == nil {
		return nil
	}
	var buffer bytes.Buffer
	if err := output.WriteJSON(&buffer, d); err != nil {
		return fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
	return f.SaveText(buffer.Bytes(), ".json")
}

// SaveText writes a text to the file, or to a spare file with this extension.
func (f *ReportFile) SaveText(text []byte, extension string) error {
	if f.file == nil {
		return nil
	}
	if err := f.write(text); err != nil {
		spare, failed := writeSpare(text, extension)
		if failed != nil {
			return fmt.Errorf("the report could not be written (%w), nor to the folder for temporary files: %w",
				Reason(err), Reason(failed))
		}
		return fmt.Errorf("the report could not be written to its file and is in %s: %w", spare, Reason(err))
	}
	return nil
}

func writeSpare(text []byte, extension string) (path string, err error) {
	file, err := os.CreateTemp("", "stallspan-report-*"+extension)
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
	}
	return file.Name(), err
}

func (f *ReportFile) write(text []byte) error {
	if err := heir.WriteAll(f.file, text); err != nil {
		return err
	}
	return f.finish()
}

// finish gives a complete file its name.
func (f *ReportFile) finish() error {
	if f.path == "" {
		return nil
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

// Discard removes a report that was not saved.
func (f *ReportFile) Discard() {
	if f.file == nil || f.path == "" {
		return
	}
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
}

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
