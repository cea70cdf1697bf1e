package locate

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestParseStatus(t *testing.T) {
	for text, want := range map[string]status{
		"Name:\tNSpid:\t9\nTgid:\t5\nNSpid:\t5\nVmSize:\t 1 kB\n": {5, 5, 0, true},
		"Tgid:\t5\nPid:\t6\nNSpid:\t6\t3\nVmSize:\t 1 kB\n":       {5, 3, 1, true}, // a thread
		"Tgid:\t5\nNSpid:\t5\t4\t1\n":                             {5, 1, 2, false},
		"Tgid:\t5\nVmSize:\t 1 kB\n":                              {5, 5, 0, true}, // a kernel without namespaces
	} {
		if got, ok := parseStatus([]byte(text)); !ok || got != want {
			t.Errorf("%q: got %+v, %v, want %+v, true", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "Tgid:\t0\n", "Tgid:\tx\n", "NSpid:\t5\n", "Tgid:\t5\nNSpid:\n",
		"Tgid:\t5\nNSpid:\t5\t-1\n", "Tgid:\t4194305\n", "Tgid:\t184467440737095516165\n"} {
		if got, ok := parseStatus([]byte(text)); ok {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

// /proc shows threads but does not list them. Their numbers are not process IDs.
func TestThread(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/6/status", []byte("Tgid:\t5\nPid:\t6\nNSpid:\t6\nVmSize:\t 1 kB\n"))
	if p, _ := New(root, "", true).Find(Who{PID: 6}); p != (Place{}) {
		t.Errorf("got %+v, want no place", p)
	}
}

func TestAmbiguousNumbers(t *testing.T) {
	these := []numbered{{7, 0, 90}, {7, 2, 70}, {7, 2, 71}, {7, 1, 50}, {7, 1, 51}, {7, 3, 30}}
	for _, test := range []struct {
		members []int
		want    int
	}{
		{nil, 0},
		{[]int{1, 2}, 0},
		{[]int{50}, 50},
		{[]int{50, 51}, 0},      // ambiguous
		{[]int{50, 51, 90}, 90}, // the one in no namespace of its own
		{[]int{50, 70, 71}, 50},
		{[]int{30, 70, 71}, 0},
		{[]int{30, 70}, 70},
	} {
		if got := among(test.members, these); got != test.want {
			t.Errorf("%v: got %d, want %d", test.members, got, test.want)
		}
	}
	for n, want := range []int{0, 70, 0} { // of none, of one, of two that are nested
		if got, taken := nested(these[:n+1]); got != want || taken != (n > 0) {
			t.Errorf("the first %d: got %d, %v, want %d, %v", n+1, got, taken, want, n > 0)
		}
	}
}

// Scans that take long are rare.
func TestScansTakeAFiftiethOfTheTime(t *testing.T) {
	var l Locator
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: 6 * time.Second, 100 * time.Millisecond: 10 * time.Second,
	} {
		l.postpone(&table{at: 5 * time.Second}, took)
		if got := time.Duration(l.scanFrom.Load()); got != want {
			t.Errorf("after %v the next one is at %v, want %v", took, got, want)
		}
	}
}
