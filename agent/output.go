package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// writeJSON writes one indented JSON object.
func writeJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // "->" is for people
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// writeTable collects what draw writes, and writes it at once.
func writeTable(out io.Writer, draw func(*table)) error {
	var text bytes.Buffer
	draw(&table{out: &text, screen: screenOf(out)})
	_, err := out.Write(text.Bytes())
	return err
}

// printed completes the error of a write to standard output.
func printed(err error) error {
	if err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	return nil
}
