package bench

import "testing"

func TestSameModel(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"/m/a", "/m/a", true}, {"/m/a/1.gguf", "/m/a", true}, {"/m/a", "/m/a/1.gguf", true},
		{"/m/ab", "/m/a", false}, {"/m/..a", "/m", true}, {"/n", "/m", false},
	} {
		if got := sameModel(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}
