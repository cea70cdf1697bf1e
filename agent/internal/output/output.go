// Package output is how commands write tables, JSON and text for a person.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
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

// TimeFormat is the format of times: RFC 3339 in UTC with milliseconds, so that lines can be sorted by it.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// significantDigits of numbers in JSON. Larger numbers are whole.
const significantDigits = 6

// Round is the nearest number with so many digits.
func Round(v float64) float64 {
	if math.Abs(v) >= math.Pow10(significantDigits) {
		return math.Round(v)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significantDigits, 64), 64) // the text is a number
	return short
}
