package progress

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// split writes data in pieces. cuts are their lengths, repeated; without cuts it is one piece.
func split(data, cuts []byte) []string {
	got := []string{}
	lines := NewLines(func(line []byte) { got = append(got, string(line)) })
	for i := 0; len(data) > 0; i++ {
		n := len(data)
		if len(cuts) > 0 {
			n = min(n, 1+int(cuts[i%len(cuts)]))
		}
		_, _ = lines.Write(data[:n])
		data = data[n:]
	}
	lines.Close()
	return got
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for name, test := range map[string]struct{ in, want string }{
		"newline":                {"a\nb\n", "a|b"},
		"carriage return":        {"Epoch 1/10\rEpoch 1/10 50%\r", "Epoch 1/10|Epoch 1/10 50%"},
		"both":                   {"a\r\nb\r\n\r\n", "a|b"},
		"unfinished":             {"a\nb", "a|b"},
		"empty lines":            {"\n\n\r\r\na\n\n", "a"},
		"blank line":             {"  \n", "  "},
		"colour":                 {"\x1b[1;31mEpoch\x1b[0m 1\n", "Epoch 1"},
		"erase":                  {"\x1b[2K\rEpoch 1\x1b[K\n", "Epoch 1"},
		"title, ended by BEL":    {"\x1b]0;train.py\x07Epoch 1\n", "Epoch 1"},
		"link, ended by ESC \\":  {"\x1b]8;;file:///a\x1b\\a\x1b]8;;\x1b\\b\n", "ab"},
		"title without an end":   {"\x1b]0;train.py\nEpoch 1\n", "Epoch 1"},
		"title cut by another":   {"\x1b]0;train\x1b[1mEpoch 1\n", "Epoch 1"},
		"character set":          {"\x1b(B\x1b7Epoch 1\x1b8\n", "Epoch 1"},
		"device control":         {"\x1bPq#0~~\x1b\\Epoch 1\n", "Epoch 1"},
		"cursor up":              {"Epoch 0\x1b[AEpoch 1\x1b[1;1HEpoch 2\n", "Epoch 0|Epoch 1|Epoch 2"},
		"sequence cut by a line": {"a\x1b[1;3\nb\n", "a|b"},
		"sequence cut by text":   {"a\x1b[1;é\n", "aé"},
		"ESC at the end":         {"a\x1b", "a"},
		"ESC ESC":                {"a\x1b\x1b[1mb\n", "ab"},
		"not UTF-8":              {"Epoch \xff\xfe1\n", "Epoch \ufffd\ufffd1"},
		"NUL":                    {"a\x00b\n", "a\x00b"},
		"as long as may be":      {long + "\nb\n", long + "|b"},
		"too long":               {long + "more\nb\n", long + "|b"},
		"too long, with colour":  {long[:MaxLine-1] + "\x1b[1mab\x1b[0m\nb\n", long[:MaxLine-1] + "a|b"},
		"cut within a rune":      {long[:MaxLine-1] + "é\n", long[:MaxLine-1] + "\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cuts := range [][]byte{nil, {0}, {1}, {2, 0, 6}} {
				if got := strings.Join(split([]byte(test.in), cuts), "|"); got != test.want {
					t.Errorf("in pieces of %v:\n%q\nwant\n%q", cuts, got, test.want)
				}
			}
		})
	}
}

func TestLinesHoldNoLongLine(t *testing.T) {
	var length int
	lines := NewLines(func(line []byte) { length = len(line) })
	piece := bytes.Repeat([]byte("0123456789\x1b[0m"), 1<<10)
	for range 1000 {
		_, _ = lines.Write(piece)
	}
	if cap(lines.line) > 2*MaxLine {
		t.Errorf("holds %d bytes of an unfinished line", cap(lines.line))
	}
	_, _ = lines.Write([]byte("\n"))
	if length != MaxLine {
		t.Errorf("the line was %d bytes long, want %d", length, MaxLine)
	}
}

func TestLinesAllocateNothing(t *testing.T) {
	lines := NewLines(func([]byte) {})
	piece := []byte("plain\n\x1b[1mbold\x1b[0m\rbad \xff\nunfin")
	_, _ = lines.Write(piece)
	if n := testing.AllocsPerRun(100, func() { _, _ = lines.Write(piece) }); n != 0 {
		t.Errorf("%v allocations for a piece of output", n)
	}
}

func FuzzLines(f *testing.F) {
	for _, path := range transcripts(f) {
		f.Add(read(f, path), []byte{0, 3, 40})
	}
	f.Add([]byte("a\x1b]0;t\x1b\x1b\\b\x1b[1;\r\n\xff\x1b(B"), []byte{0})
	f.Add(bytes.Repeat([]byte("é\x1b[0m"), MaxLine), []byte{255, 1})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		whole := split(data, nil)
		for _, line := range whole {
			if line == "" || len(line) > 3*MaxLine || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("line %q", line)
			}
		}
		pieces := split(data, cuts)
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Fatalf("in pieces of %v: %q\nwhole: %q", cuts, pieces, whole)
		}
	})
}

// The benchmark's input is bulk output: log lines without epochs or loads, some of them colored.
func output(colour bool) []byte {
	line := "2026-06-07 12:00:00,123 worker-3 step 001234 tokens/s 51234.2 loss 2.3451 lr 3.0e-04 mem 71.2G\n"
	if colour {
		line = "\x1b[32m2026-06-07 12:00:00\x1b[0m worker-3 step 001234 \x1b[1mtokens/s\x1b[0m 51234.2 loss 2.3451\r"
	}
	return []byte(strings.Repeat(line, 32<<10/len(line)))
}

func BenchmarkLines(b *testing.B) {
	for name, data := range map[string][]byte{
		"plain":              output(false),
		"colour":             output(true),
		"one line of 32 KiB": bytes.Repeat([]byte("x"), 32<<10),
	} {
		b.Run(name, func(b *testing.B) {
			lines := NewLines(func([]byte) {})
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = lines.Write(data)
			}
		})
	}
}
