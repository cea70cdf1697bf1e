package collector

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// span is one that the file exporter wrote: OTLP's JSON.
type span struct {
	TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano, EndTimeUnixNano string

	Attributes attributes
	Events     []struct{ Name string }
	Status     struct{ Code int }

	resource attributes
	scope    string
}

// attributes are OTLP's pairs, by name and with the values that JSON has: int64 comes as a string.
type attributes map[string]any

func (a *attributes) UnmarshalJSON(text []byte) error {
	var pairs []struct {
		Key   string
		Value map[string]any
	}
	if err := json.Unmarshal(text, &pairs); err != nil {
		return err
	}
	*a = attributes{}
	for _, p := range pairs {
		for kind, v := range p.Value {
			if kind == "intValue" {
				v, _ = strconv.ParseInt(v.(string), 10, 64)
			}
			(*a)[p.Key] = v
		}
	}
	return nil
}

func (a attributes) number(key string) float64 {
	switch v := a[key].(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// seconds returns the duration of the span.
func (s *span) seconds(t *testing.T) float64 {
	t.Helper()
	start, err1 := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
	end, err2 := strconv.ParseInt(s.EndTimeUnixNano, 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("times of span %s: %v, %v", s.Name, err1, err2)
	}
	return time.Duration(end - start).Seconds()
}

// spans returns the spans in the output file.
func (c *collector) spans() (all []*span) {
	c.t.Helper()
	c.lines("spans.json", func(line []byte) error {
		var batch struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes attributes }
				ScopeSpans []struct {
					Scope struct{ Name string }
					Spans []*span
				}
			}
		}
		err := json.Unmarshal(line, &batch)
		for _, r := range batch.ResourceSpans {
			for _, ss := range r.ScopeSpans {
				for _, s := range ss.Spans {
					s.resource, s.scope = r.Resource.Attributes, ss.Scope.Name
					all = append(all, s)
				}
			}
		}
		return err
	})
	return all
}

// find waits for a span of that name.
func (c *collector) find(name string) (found *span) {
	c.t.Helper()
	c.until("the output has a span "+name, func() bool {
		for _, s := range c.spans() {
			if s.Name == name {
				found = s
			}
		}
		return found != nil
	})
	return found
}

// children returns the children of s.
func (c *collector) children(s *span) (all []*span) {
	c.t.Helper()
	for _, child := range c.spans() {
		if child.TraceID == s.TraceID && child.ParentSpanID == s.SpanID {
			all = append(all, child)
		}
	}
	return all
}

// lines calls yield for each whole line of a file in the output.
func (c *collector) lines(name string, yield func([]byte) error) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.output, name))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return // not yet complete
		}
		if err := yield(line); err != nil {
			c.t.Fatalf("%s: %v: %.200s", name, err, line)
		}
	}
}
