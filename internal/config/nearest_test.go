package config

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"model", "name", "gpu_ids", "epoch", "on", "top", "y"}
	for wrong, want := range map[string]string{
		"mdoel": "model", "mdl": "model", "NAME": "name", "gpu_id": "gpu_ids", "gpuids": "gpu_ids", "epochs": "epoch",
		"no": "on", "tpo": "top", "foo": "", "x": "", "noun": "",
		"": "", "zzz": "", "é": "", strings.Repeat("model", 100): "",
	} {
		if got := Nearest(wrong, known); got != want {
			t.Errorf("%q: got %q, want %q", wrong, got, want)
		}
	}
}
