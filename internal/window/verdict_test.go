package window

import "testing"

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		shares
		want Verdict
	}{
		{"busy", shares{busy: 0.95, storage: 0.05}, GPUBound},
		{"busy beside a stall that matters little", shares{busy: 0.9, storage: 0.1}, GPUBound},
		{"storage", shares{busy: 0.4, storage: 0.5, cpu: 0.1}, StorageBound},
		{"storage at its threshold", shares{busy: 0.84, storage: 0.15, cpu: 0.01}, StorageBound},
		{"cpu", shares{busy: 0.4, storage: 0.1, cpu: 0.5}, CPUBound},
		{"both", shares{busy: 0.3, storage: 0.3, cpu: 0.4}, Mixed},
		{"idle for an unknown cause", shares{busy: 0.1, storage: 0.2, other: 0.7}, Unknown},
		{"storage beside much that is unknown", shares{busy: 0, storage: 0.45, other: 0.55}, StorageBound},
		{"nothing large", shares{busy: 0.85, storage: 0.05, cpu: 0.05, other: 0.05}, Unknown},
		{"an idle machine", shares{other: 1}, Unknown},
	} {
		if got := c.verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
