package events

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// No event shows a control character on the terminal.
func FuzzEventWords(f *testing.F) {
	f.Add(`{"missed":3}`)
	f.Add(`{"name":"stallspan.gpu.lost","severity":"error","body":"\u001b]0;x\u0007","time":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"resolved":true,"body":"two\nlines"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var e Shown
		if json.Unmarshal([]byte(line), &e) != nil {
			return
		}
		if words := e.Words(); strings.ContainsFunc(words, unicode.IsControl) {
			t.Errorf("%q: got %q", line, words)
		}
	})
}
