//go:build linux

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// judgeAgain judges the recording of an earlier run with today's program, against the logs of that run. With the
// evidence pressure the recording is replayed without the scheduler's events.
func (t tools) judgeAgain(_ context.Context, j job, seed uint64, evidence string) (results []*result, err error) {
	name := filepath.Join(t.keep, fmt.Sprintf("%s-%d-%s", j.Name, seed, schedule))
	folder, err := os.MkdirTemp("", "stallspan-jobs-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	recording := name + ".jsonl.gz"
	if evidence == pressure {
		without := filepath.Join(folder, "without.jsonl.gz")
		if err := withoutEvents(recording, without); err != nil {
			return nil, err
		}
		recording = without
	}
	r := &running{tools: t, job: j, folder: name, report: filepath.Join(folder, "report.json")}
	if _, err := tool(t.stallspan, "replay", "--report", r.report, recording); err != nil {
		return nil, err
	}
	return r.judge(seed, evidence)
}

// withoutEvents copies a recording, except for the readings of the scheduler's events.
func withoutEvents(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(out)
	lines := bufio.NewReader(unpacked)
	for {
		line, err := lines.ReadBytes('\n')
		if !bytes.HasPrefix(line, []byte(`{"source":"schedule"`)) {
			if _, err := packed.Write(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return packed.Close()
		} else if err != nil {
			return err
		}
	}
}

// keepRun copies what a run left behind into the folder that is kept: report, recording and logs.
func (r *running) keepRun(name string) error {
	for from, to := range map[string]string{"report.json": name + ".json", "recording.jsonl.gz": name + ".jsonl.gz"} {
		if err := copyFile(filepath.Join(r.folder, "out", from), filepath.Join(r.keep, to)); err != nil {
			return err
		}
	}
	kept := filepath.Join(r.keep, name)
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	for _, logs := range []string{logFolder, secondFolder} {
		if err := os.CopyFS(filepath.Join(kept, logs), os.DirFS(filepath.Join(r.folder, logs))); err != nil {
			return err
		}
	}
	return nil
}
