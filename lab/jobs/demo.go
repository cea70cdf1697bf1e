//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
)

// nearEnough is how far a prediction of the demo may be off.
const nearEnough = 0.10

// demos runs the demo so many times and prints what it predicted and measured. The user is "" for root.
func (t tools) demos(ctx context.Context, runs int, user, evidence string) error {
	var errors []float64
	good := 0
	for range runs {
		predicted, measured, err := t.demo(ctx, user, evidence)
		if err != nil {
			return err
		}
		off := math.Abs(predicted-measured) / measured
		errors = append(errors, 100*off)
		if off <= nearEnough {
			good++
		}
		fmt.Printf("predicted %.2f, measured %.2f: %.1f %% off\n", predicted, measured, 100*off)
	}
	fmt.Printf("%d of %d within %.0f %%; median %s, largest %s\n", good, runs, 100*nearEnough, of(errors, 0.5, "%"),
		of(errors, 1, "%"))
	return nil
}

func (t tools) demo(ctx context.Context, user, evidence string) (predicted, measured float64, err error) {
	c := exec.CommandContext(ctx, t.stallspan, "demo", "--json")
	c.Dir = "/"
	c.Env = append(os.Environ(), "HOME=/nonexistent")
	if evidence == sampled {
		c.Env = append(c.Env, "STALLSPAN_SCHEDULE=off")
	}
	if user != "" {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: credential(user)}
	}
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("demo: %w: %s", err, bytes.TrimSpace(problems.Bytes()))
	}
	var report struct {
		Predicted float64 `json:"predicted_speedup"`
		Measured  float64 `json:"measured_speedup"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return 0, 0, err
	}
	if report.Predicted == 0 || report.Measured == 0 {
		return 0, 0, fmt.Errorf("the demo printed no speed-up: %s", bytes.TrimSpace(problems.Bytes()))
	}
	return report.Predicted, report.Measured, nil
}
