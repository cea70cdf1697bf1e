package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// A picture is well-formed XML with every line of the text.
func TestDraw(t *testing.T) {
	text := "$ stallspan demo\n\nwindow  verdict\na < b & c  storage_bound SLOW\n  Try: more workers\n"
	picture := string(draw(text))
	decoder := xml.NewDecoder(strings.NewReader(picture))
	var found strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is not XML: %v\n%s", err, picture)
		}
		if data, ok := token.(xml.CharData); ok {
			found.Write(data)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(found.String(), strings.TrimSuffix(line, "\n")) {
			t.Errorf("got no line %q in\n%s", line, picture)
		}
	}
	if again := string(draw(text)); again != picture {
		t.Errorf("got another picture of the same text:\n%s\nwant\n%s", again, picture)
	}
}
