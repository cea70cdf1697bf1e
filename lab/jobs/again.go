//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// judgeAgain judges the recording of an earlier run with today's program, against the logs of that run.
func (t tools) judgeAgain(_ context.Context, j job, seed uint64, evidence string) (results []*result, err error) {
	name := filepath.Join(t.keep, fmt.Sprintf("%s-%d-%s", j.Name, seed, evidence))
	folder, err := os.MkdirTemp("", "stallspan-jobs-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	recording := name + ".jsonl.gz"
	r := &running{tools: t, job: j, folder: name, report: filepath.Join(folder, "report.json")}
	if _, err := tool(t.stallspan, "replay", "--report", r.report, recording); err != nil {
		return nil, err
	}
	return r.judge(seed, evidence)
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
