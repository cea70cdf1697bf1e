package top

import (
	"strings"
	"testing"
)

func TestTree(t *testing.T) {
	for name, test := range map[string]struct {
		list  []Member
		ascii bool
		want  string
	}{
		"workers of a training": {[]Member{{PID: 12, Parent: 11, Name: "worker"}, {PID: 10, Parent: 1, Name: "torchrun"},
			{PID: 11, Parent: 10, Name: "train.py"}, {PID: 14, Parent: 13, Name: "sh"}, {PID: 13, Parent: 11, Name: "worker"},
			{PID: 15, Parent: 10, Name: "train.py"}}, false, `torchrun
├─ train.py
│  ├─ worker
│  └─ worker
│     └─ sh
└─ train.py`},
		"ASCII": {[]Member{{PID: 1, Name: "a"}, {PID: 2, Parent: 1, Name: "b"}, {PID: 3, Parent: 2, Name: "c"},
			{PID: 4, Parent: 1, Name: "d"}}, true, "a\n|- b\n|  `- c\n`- d"},
		"parents unknown": {[]Member{{PID: 3, Name: "c"}, {PID: 2, Name: "b"}}, false, "b\nc"},
		"its own parent":  {[]Member{{PID: 3, Parent: 3, Name: "c"}}, false, "c"},
		"none":            {nil, false, ""},
	} {
		var lines []string
		for _, b := range tree(test.list, test.ascii) {
			lines = append(lines, b.before+b.Name)
		}
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// Parents are read at different times: a circle is shown, and ends.
func TestTreeOfACircle(t *testing.T) {
	got := tree([]Member{{PID: 1, Parent: 2}, {PID: 2, Parent: 1}, {PID: 3}}, false)
	if len(got) != 3 {
		t.Errorf("got %d processes, want 3: %+v", len(got), got)
	}
}
