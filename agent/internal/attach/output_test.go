package attach

import (
	"slices"
	"testing"
)

// What a container prints is read as it was printed, from the logs of all runtimes.
func TestUnwrapped(t *testing.T) {
	var got []string
	read := unwrapped(func(line []byte) { got = append(got, string(line)) })
	for _, line := range []string{
		`{"log":"  0%|      | 0/4\r 25%|█▎    | 1/4\r","stream":"stderr","time":"2026-05-04T10:00:00.301Z"}`,
		`{"log":"Epoch 1/3\n","stream":"stdout","time":"2026-05-04T10:00:00.301Z"}`,
		`{"log":"cut off`,
		`{"log":3,"epoch":4}`,
		`2026-05-04T10:00:00.301Z stdout F Epoch 2/3`,
	} {
		read([]byte(line))
	}
	want := []string{"  0%|      | 0/4", " 25%|█▎    | 1/4", "Epoch 1/3", `{"log":"cut off`, `{"log":3,"epoch":4}`,
		"2026-05-04T10:00:00.301Z stdout F Epoch 2/3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
