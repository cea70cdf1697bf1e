package reports

import (
	"bytes"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
)

// terminalOf returns what a terminal of this width can show.
func terminalOf(t *testing.T, width uint16, when output.When) output.Screen {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("needs a terminal: %v", err)
	}
	defer func() { _, _ = master.Close(), slave.Close() }()
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 25, Cols: width}); err != nil {
		t.Fatal(err)
	}
	return output.ScreenFor(slave, when)
}

// From 60 to 250 columns, no row or sentence is wider than the terminal, and no word is cut.
func TestTableWidths(t *testing.T) {
	const sentence = "The program waited for storage 61 % of the time: 1200 operations read 408.7 MiB from nvme0n1."
	for _, width := range []uint16{60, 66, 71, 72, 79, 80, 100, 160, 250} {
		var out bytes.Buffer
		row := explain.Row{Label: "epoch 12", Duration: "16.0 min", Busy: "100 %", Storage: "100 %", CPU: "100 %",
			Ready: "100 %", Other: "100 %", Verdict: "storage_bound SLOW"}
		w := &windowTable{Table: &output.Table{Out: &out, Screen: terminalOf(t, width, output.Never)}}
		for i := range 4 { // with and without GPUs, and time without a core
			w.gpu, w.ready = i < 2, i%2 == 0
			w.row(row, "nvme0n1")
		}
		w.Text("  Try: ", sentence)
		for line := range strings.Lines(out.String()) {
			if got := output.Columns(strings.TrimSuffix(line, "\n")); got > int(width) {
				t.Errorf("%d columns: got %d: %q", width, got, line)
			}
		}
		_, text, _ := strings.Cut(out.String(), "Try: ")
		if got := strings.Join(strings.Fields(text), " "); got != sentence {
			t.Errorf("%d columns: got the words %q, want %q", width, got, sentence)
		}
		if lines := strings.Count(text, "\n"); width == 250 && lines != 1 {
			t.Errorf("250 columns: got %d lines, want 1", lines)
		}
	}
}

// Colours are around words and change no column.
func TestTableColors(t *testing.T) {
	draw := func(when output.When) string {
		var out bytes.Buffer
		w := &windowTable{Table: &output.Table{Out: &out, Screen: terminalOf(t, 80, when)}}
		for _, verdict := range []string{"storage_bound SLOW", "gpu_bound", "cpu_bound", "unknown"} {
			w.gpu = true
			w.row(explain.Row{Label: "epoch 1", Duration: "1.0 s", Busy: "20 %", Storage: "61 %", CPU: "10 %", Other: "9 %",
				Verdict: verdict}, "\x1b[31mvda")
		}
		w.Colored(output.Bad, "missing GPU ", "There is no driver.")
		return out.String()
	}
	plain, colored := draw(output.Never), draw(output.Always)
	for _, want := range []string{"\x1b[31mstorage_bound SLOW\x1b[0m\n", "\x1b[32mgpu_bound\x1b[0m\n",
		"\x1b[36mcpu_bound\x1b[0m\n", " unknown\n", "\x1b[31mmissing GPU \x1b[0mThere"} {
		if !strings.Contains(colored, want) {
			t.Errorf("got %q, want %q in it", colored, want)
		}
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"} {
		colored = strings.ReplaceAll(colored, code, "")
	}
	if colored != plain || strings.Contains(plain, "\x1b") {
		t.Errorf("got %q without the colours, want %q", colored, plain)
	}
}
