// Package gpucheck holds the programs of hack/gpu-check.sh, and this test of them with the stand-in for the driver.
package gpucheck

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// found is what the test looks at of gpu-check.json.
type found struct {
	Fake   bool     `json:"fake"`
	GPU    string   `json:"gpu"`
	NotRun []string `json:"not_run"`
	Parts  map[string]struct {
		OK        *bool    `json:"ok"`
		Skipped   bool     `json:"skipped"`
		Why       string   `json:"why"`
		Traceback []string `json:"traceback"`
		NotTimed  []string `json:"calls_not_timed"`
		Samples   struct {
			Median float64 `json:"median_ms"`
		} `json:"driver_samples"`
	} `json:"parts"`
}

// TestWithTheStandIn runs the whole check without a GPU. How good the figures are it does not say: machines are busy.
// But every part that can be run is, to its end, and what does not hang on time is right.
func TestWithTheStandIn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	for _, tool := range []string{"python3", "bash", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	library := fixture.NVML(t)
	folder := t.TempDir()
	program := filepath.Join(folder, "stallspan")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	out := filepath.Join(folder, "out")
	script := filepath.Join("..", "..", "hack", "gpu-check.sh")
	check := exec.CommandContext(ctx, script, "--fake", "--nvml", filepath.Dir(library),
		"--stallspan", program, "--out", out, "--data", folder)
	check.Cancel = func() error { return check.Process.Signal(os.Interrupt) }
	said, err := check.CombinedOutput() // the exit code reports whether all aims were reached
	t.Logf("%v\n%s", err, said)
	text, err := os.ReadFile(filepath.Join(out, "gpu-check.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f found
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if !f.Fake || f.GPU != "NVIDIA Fake 100" {
		t.Errorf("fake %v, GPU %q", f.Fake, f.GPU)
	}
	for _, name := range []string{"facts", "metrics", "busy", "load", "recording", "cost"} {
		part, ok := f.Parts[name]
		if name == "load" || name == "recording" {
			if slices.Contains(f.NotRun, name) { // the folder for temporary files lies in memory
				continue
			}
		}
		if !ok || part.OK == nil || len(part.Traceback) > 0 {
			t.Errorf("%s did not finish: %s %q", name, part.Why, part.Traceback)
		} else if !*part.OK && (name == "facts" || name == "recording") {
			t.Errorf("part %s failed: %s", name, part.Why)
		}
	}
	if unknown := f.Parts["cost"].NotTimed; len(unknown) > 0 {
		t.Errorf("what single calls of %q take is not known", unknown)
	}
	if apart := f.Parts["busy"].Samples.Median; apart < 45 || apart > 55 { // work_duty.py plays 50
		t.Errorf("the driver's samples are said to be %v ms apart", apart)
	}
	if part := f.Parts["training"]; !part.Skipped || part.Why == "" {
		t.Errorf("training was not skipped with a reason: %+v", part)
	}
	left, err := filepath.Glob(filepath.Join(folder, "gpu-check-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestPython runs the tests that are written in Python.
func TestPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, "python3", "-B", "gpucheck_test.py").CombinedOutput(); err != nil {
		t.Errorf("gpucheck_test.py: %v\n%s", err, said)
	}
}
