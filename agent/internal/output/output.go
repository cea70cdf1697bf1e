// Package output is how commands write tables, JSON and text for a person.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes one indented JSON object.
func WriteJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // "->" is for people
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// WriteTable collects what draw writes, and writes it at once.
func WriteTable(out io.Writer, draw func(*Table)) error {
	var text bytes.Buffer
	draw(&Table{Out: &text, Screen: ScreenOf(out)})
	_, err := out.Write(text.Bytes())
	return err
}

// Print writes a result as JSON or as a table. Its error is complete.
func Print(out io.Writer, asJSON bool, result any, draw func(*Table)) error {
	if asJSON {
		return Printed(WriteJSON(out, result))
	}
	return Printed(WriteTable(out, draw))
}

// Printed completes the error of a write to standard output.
func Printed(err error) error {
	if err != nil {
		return fmt.Errorf("the output cannot be written: %w", err)
	}
	return nil
}
