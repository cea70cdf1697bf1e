package sampling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestCheckGPUs(t *testing.T) {
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckGPUs([]string{"GPU-nope"}); err != nil {
		t.Errorf("without a reading of GPUs: got %v, want no error", err)
	}
	reading := &sample.Sample{At: sample.Now(), GPUs: []sample.GPU{{ID: "GPU-1"}, {ID: "GPU-0"}}}
	r.Append("gpu", reading, nil)
	if err := r.CheckGPUs([]string{"GPU-0", "GPU-1"}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	const want = `this machine has no GPU "GPU-nope": name one of GPU-0, GPU-1`
	if err := r.CheckGPUs([]string{"GPU-0", "GPU-nope"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	reading = &sample.Sample{At: sample.Now()}
	for i := range 20 {
		reading.GPUs = append(reading.GPUs, sample.GPU{ID: fmt.Sprintf("GPU-%02d", i)})
	}
	r.Append("gpu", reading, nil)
	if err := r.CheckGPUs([]string{"x"}); err == nil || !strings.Contains(err.Error(), " and 6 more") {
		t.Errorf("got %v, want 16 GPUs, and 6 more", err)
	}
	if err := r.CheckGPUs([]string{"GPU-1"}); err != nil {
		t.Errorf("a GPU that has gone: got %v, want no error", err)
	}
}
