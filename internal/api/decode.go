package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// field is one key of an Announcement.
type field struct {
	key     string
	expects string // what its value must be
	set     func(a *Announcement, value []byte) error
}

var fields = []field{
	{"attributes", `an object with text values, like {"site":"a"}`, func(a *Announcement, v []byte) error { return a.setAttributes(v) }},
	{"epoch", "an integer, like 3", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Epoch) }},
	{"gpu_ids", `an array of GPU ids, like ["GPU-5d3c…"]`, func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.GPUIDs) }},
	{"kind", "text: " + choices(kinds), func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Kind) }},
	{"model", "text", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Model) }},
	{"name", "text", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Name) }},
	{"path", "text: an absolute path", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Path) }},
	{"pid", "an integer: a process id", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.PID) }},
	{"run", "text", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Run) }},
	{"traceparent", "text, as W3C Trace Context has it", func(a *Announcement, v []byte) error { return json.Unmarshal(v, &a.Traceparent) }},
}

// decode reads the one JSON object that body must be. Unlike encoding/json it refuses keys that it does not know, keys
// that come twice or in capitals, and says of a wrong value what it should be. null counts as absent.
func decode(body []byte) (*Announcement, error) {
	a := &Announcement{}
	if err := object(body, a.set); err != nil {
		return nil, err
	}
	return a, a.check()
}

// decodeEnd reads the body of a window's end, which may be absent.
func decodeEnd(body []byte) (failed bool, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return false, nil
	}
	err = object(body, func(key string, value []byte) error {
		if key != "failed" {
			return errors.New("unknown")
		}
		return json.Unmarshal(value, &failed)
	})
	if err != nil {
		return false, refuse(http.StatusBadRequest, `nothing but {"failed": true} is said when a window ends: send that, {}, or no body`)
	}
	return failed, nil
}

// object goes through the keys of one JSON object.
func object(body []byte, set func(key string, value []byte) error) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return notObject(body, err)
	}
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			return notObject(body, err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return notObject(body, err)
		}
		if seen[key] {
			return refuse(http.StatusBadRequest, "the key %s comes twice: give it once", excerpt(key))
		}
		seen[key] = true
		if err := set(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return notObject(body, err)
	}
	end := dec.InputOffset()
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "something follows the JSON object after byte %d: send one object and nothing else", end)
	}
	return nil
}

func (a *Announcement) set(key string, value []byte) error {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
		if f.key != key {
			continue
		}
		err := f.set(a, value)
		var told *Error
		if err == nil || errors.As(err, &told) {
			return err
		}
		return refuse(http.StatusBadRequest, "%s must be %s, not %s", f.key, f.expects, describe(value))
	}
	return refuse(http.StatusBadRequest, "unknown key %s: use %s", excerpt(key), choices(keys))
}

// setAttributes names the attribute whose value is no text.
func (a *Announcement) setAttributes(value []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(value, &all); err != nil {
		return err
	}
	a.Attributes = make(map[string]string, len(all))
	for key, raw := range all {
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil {
			return refuse(http.StatusBadRequest, "the attribute %s must be text, in quotes, not %s", excerpt(key), describe(raw))
		}
		if text != nil {
			a.Attributes[key] = *text
		}
	}
	return nil
}

// notObject explains a body that is not one JSON object.
func notObject(body []byte, err error) error {
	const wanted = `send a JSON object like {"kind":"epoch","epoch":3}`
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return refuse(http.StatusBadRequest, "the body is empty: %s", wanted)
	case err == nil:
		return refuse(http.StatusBadRequest, "the body is no JSON object: %s", wanted)
	case errors.As(err, &syntax):
		return refuse(http.StatusBadRequest, "the body is not JSON at byte %d (%v): %s", syntax.Offset, err, wanted)
	}
	return refuse(http.StatusBadRequest, "the body breaks off in the middle: %s", wanted)
}

// describe names a valid JSON value in few words.
func describe(value []byte) string {
	switch {
	case bytes.HasPrefix(value, []byte("{")):
		return "an object"
	case bytes.HasPrefix(value, []byte("[")):
		return "an array"
	case bytes.HasPrefix(value, []byte(`"`)):
		return "the text " + excerpt(string(bytes.Trim(value, `"`)))
	}
	return string(value[:min(len(value), 60)]) // a number, true, false or null
}
