package output

import "testing"

func TestSizeText(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 20: "1 MiB", 1536: "1.5 KiB",
		256 << 20: "256 MiB", 5 << 40: "5120 GiB"} {
		if got := SizeText(bytes); got != want {
			t.Errorf("%d: got %s, want %s", bytes, got, want)
		}
	}
}
