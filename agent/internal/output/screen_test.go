package output

import (
	"bytes"
	"os"
	"testing"

	"github.com/creack/pty"
)

func pseudoTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("needs a terminal: %v", err)
	}
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() })
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 25, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	return slave
}

func TestWidth(t *testing.T) {
	for columns, want := range map[uint16]int{0: 80, 20: 60, 60: 60, 80: 80, 133: 133, 250: 250, 400: 250} {
		if got := ScreenFor(pseudoTerminal(t, columns), Auto).Width(); got != want {
			t.Errorf("a terminal of %d columns: got %d, want %d", columns, got, want)
		}
	}
	if s := ScreenFor(&bytes.Buffer{}, Auto); s.Width() != 80 || s.Terminal() || s.Columns() != 0 {
		t.Errorf("a file: got %+v, want 80 columns and no terminal", s)
	}
}

func TestColors(t *testing.T) {
	tty := pseudoTerminal(t, 80)
	const red, plain = "\x1b[31mSLOW\x1b[0m", "SLOW"
	for _, test := range []struct {
		name, noColor, term string
		when                When
		terminal            bool
		want                string
	}{
		{"a terminal", "", "xterm", Auto, true, red},
		{"a file", "", "xterm", Auto, false, plain},
		{"always, to a file", "", "xterm", Always, false, red},
		{"never", "", "xterm", Never, true, plain},
		{"NO_COLOR", "1", "xterm", Auto, true, plain},
		{"NO_COLOR and always", "1", "xterm", Always, true, red},
		{"a dumb terminal", "", "dumb", Auto, true, plain},
	} {
		t.Setenv("NO_COLOR", test.noColor)
		t.Setenv("TERM", test.term)
		s := ScreenFor(&bytes.Buffer{}, test.when)
		if test.terminal {
			s = ScreenFor(tty, test.when)
		}
		if got := s.Paint(Bad, "SLOW"); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if got := s.Paint(Plain, "SLOW"); got != plain {
			t.Errorf("%s, plain: got %q, want %q", test.name, got, plain)
		}
	}
}

func TestWhen(t *testing.T) {
	w := Never
	for _, text := range []string{"", "yes", "Auto"} {
		if err := w.Set(text); err == nil || w != Never {
			t.Errorf("%q: got %v, want an error", text, w)
		}
	}
	if err := w.Set("always"); w != Always || err != nil {
		t.Errorf("got %v, %v, want always", w, err)
	}
}
