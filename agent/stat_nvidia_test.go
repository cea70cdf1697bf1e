package agent

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// stat and nvidia-smi agree on a real GPU in the same second.
func TestStatAgainstNvidiaSMI(t *testing.T) {
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		t.Skip("needs an NVIDIA GPU, and nvidia-smi")
	}
	v := stallspan(t, "stat", "--json", "1", "3")
	v.start()
	fields := []string{"uuid", "name", "memory.used", "memory.total", "temperature.gpu", "power.draw",
		"pcie.link.width.current", "pcie.link.gen.current"}
	text, err := exec.Command(smi, "--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits").Output()
	if err != nil {
		t.Skipf("nvidia-smi does not answer: %v", err)
	}
	if code := v.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	lines := strings.Split(strings.TrimSpace(v.out.String()), "\n")
	var last struct{ GPUs []map[string]any }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.TrimLeadingSpace = true
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		compareGPU(t, row, last.GPUs)
	}
}

// compareGPU compares one line of nvidia-smi with the GPU of that id. Values that one of them lacks are skipped.
func compareGPU(t *testing.T, row []string, gpus []map[string]any) {
	t.Helper()
	for _, gpu := range gpus {
		if gpu["id"] != row[0] {
			continue
		}
		if gpu["name"] != row[1] {
			t.Errorf("name %v, nvidia-smi says %s", gpu["name"], row[1])
		}
		for i, field := range []struct {
			key             string
			unit, tolerance float64
		}{
			{"memory_used_bytes", 1 << 20, 64 << 20}, {"memory_total_bytes", 1 << 20, 1 << 20}, {"temperature_celsius", 1, 3},
			{"power_watts", 1, 40}, {"pcie_link_width", 1, 0}, {"pcie_link_generation", 1, 2}, // it changes with the load
		} {
			want, err := strconv.ParseFloat(row[2+i], 64)
			got, known := gpu[field.key].(float64)
			if err == nil && known && math.Abs(got-want*field.unit) > field.tolerance {
				t.Errorf("%s: %s is %v, nvidia-smi says %s", row[0], field.key, got, row[2+i])
			}
		}
		return
	}
	t.Errorf("nvidia-smi lists %s, stat does not: %v", row[0], gpus)
}
