package output

import "testing"

func FuzzFit(f *testing.F) {
	for _, s := range []string{"", "epoch 1", "load /models/llama.gguf", "模型/通义千问", "\xff\xfe", "a\x00b", "👍👍👍👍👍👍👍👍"} {
		f.Add(s, 15)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width < 4 || width > 200 {
			return
		}
		if got := Fit(s, width); Columns(got) != width {
			t.Errorf("%q is %d columns wide, not %d", got, Columns(got), width)
		}
	})
}
