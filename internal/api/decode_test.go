package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stallspan/stallspan/internal/window"
)

func many(n int, entry func(i int) string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = entry(i)
	}
	return strings.Join(entries, ",")
}

func numbered(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }

var badBodies = []struct{ body, want string }{
	{``, `the body is empty: send a JSON object like {"kind":"epoch","epoch":3}`},
	{"  \n", `the body is empty`},
	{`kind=epoch&epoch=3`, `the body is not JSON at byte 1`},
	{`[]`, `the body is not a JSON object: send a JSON object like`},
	{`"epoch"`, `the body is not a JSON object`},
	{"3\xc4\n", `the body is not a JSON object`},
	{`{`, `the body ends before the JSON object does`},
	{`{"kind"`, `the body ends before the JSON object does`},
	{`{"kind":"epoch"`, `the body ends before the JSON object does`},
	{`{"kind":"epoch",}`, `the body is not JSON at byte 17`},
	{`{"kind":"epoch" "epoch":3}`, `the body is not JSON`},
	{`{"kind" "epoch"}`, `the body is not JSON`},
	{`{3:4}`, `the body is not JSON`},
	{`{"kind":"epoch"} x`, `text follows the JSON object after byte 16`},
	{`{"kind":"epoch"}{"kind":"epoch"}`, `text follows the JSON object`},
	{`{"kind":"epoch"}}`, `text follows the JSON object`},
	{"\xef\xbb\xbf{}", `the body is not JSON`},

	{`{"kind":"epoch","mdoel":"x"}`, `unknown key "mdoel": did you mean "model"?`},
	{`{"kind":"epoch","trace_parent":""}`, `unknown key "trace_parent": did you mean "traceparent"?`},
	{`{"kind":"epoch","zzzzzzzz":1}`, `unknown key "zzzzzzzz": use attributes, epoch, gpu_ids`},
	{`{"kind":"epcoh"}`, `"epcoh" is not a kind of window: did you mean "epoch"?`},
	{`{"kind":"epoch","":1}`, `unknown key "": use attributes, epoch, gpu_ids, kind, model, name, path, pid, run or traceparent`},
	{`{"kind":"epoch","` + strings.Repeat("x", 5000) + `":1}`, `x…": use attributes,`},

	{`null`, `kind is missing`},
	{`{}`, `kind is missing: give model_load, epoch, checkpoint, steps or custom`},
	{`{"kind":null}`, `kind is missing`},
	{`{"kind":""}`, `kind is missing`},
	{`{"kind":"zzzzzzzz"}`, `"zzzzzzzz" is not a kind of window: give model_load, epoch, checkpoint, steps or custom`},
	{`{"kind":3}`, `kind must be text: model_load, epoch, checkpoint, steps or custom, not number`},

	{`{"kind":"epoch","epoch":"three"}`, `epoch must be an integer, like 3, not string`},
	{`{"kind":"epoch","epoch":-1}`, `epoch -1 is negative: give the number that the program prints, from 0 on`},
	{`{"kind":"epoch","epoch":3.0}`, `epoch must be an integer, like 3, not number 3.0`},
	{`{"kind":"epoch","epoch":1e400}`, `epoch must be an integer, like 3, not number 1e400`},
	{`{"kind":"epoch","epoch":99999999999999999999}`, `epoch must be an integer`},
	{`{"kind":"epoch","epoch":true}`, `epoch must be an integer, like 3, not bool`},
	{`{"kind":"epoch","epoch":{"n":3}}`, `epoch must be an integer, like 3, not object`},
	{`{"kind":"epoch","name":["a"]}`, `name must be text, not array`},
	{`{"kind":"epoch","model":{}}`, `model must be text, not object`},
	{`{"kind":"epoch","path":1}`, `path must be text, not number`},
	{`{"kind":"epoch","path":"data/train"}`, `path "data/train" is relative: give an absolute path`},
	{`{"kind":"epoch","name":"a\nb"}`, `name contains a line break or another control character`},
	{`{"kind":"epoch","model":"\u001b[2J"}`, `model contains a line break or another control character`},
	{`{"kind":"epoch","name":"` + strings.Repeat("n", 1025) + `"}`, `name is 1025 bytes long: the limit is 1024`},
	{`{"kind":"epoch","path":"/` + strings.Repeat("n", 1024) + `"}`, `path is 1025 bytes long`},

	{`{"kind":"epoch","pid":"1"}`, `pid must be an integer: a process id, not string`},
	{`{"kind":"epoch","pid":-1}`, `pid -1 is not a process ID: give a number from 1 to 4194304`},
	{`{"kind":"epoch","pid":4194305}`, `pid 4194305 is not a process ID`},

	{`{"kind":"epoch","gpu_ids":"GPU-1"}`, `gpu_ids must be an array of GPU ids, like ["GPU-5d3c…"], not string`},
	{`{"kind":"epoch","gpu_ids":[0,1]}`, `gpu_ids must be an array of GPU ids, like ["GPU-5d3c…"], not number`},
	{`{"kind":"epoch","gpu_ids":[null]}`, `gpu_ids contains "", which is not a GPU's ID`},
	{`{"kind":"epoch","gpu_ids":[` + many(65, func(int) string { return `"GPU-1"` }) + `]}`,
		`gpu_ids lists 65 GPUs: the limit is 64`},

	{`{"kind":"epoch","traceparent":1}`, `traceparent must be text, not number`},

	{`{"kind":"epoch","attributes":[]}`, `attributes must be an object with text values, like {"site":"a"}, not array`},
	{`{"kind":"epoch","attributes":{"lr":0.1}}`, `attributes must be an object with text values, like {"site":"a"}, not number`},
	{`{"kind":"epoch","attributes":{"a\nb":{}}}`, `attributes must be an object with text values, like {"site":"a"}, not object`},
	{`{"kind":"epoch","attributes":{"":"x"}}`, `attributes has the key ""`},
	{`{"kind":"epoch","attributes":{"k":"` + strings.Repeat("v", 1024) + `"}}`,
		`the attribute "k" has 1025 bytes with its key`},
	{`{"kind":"epoch","attributes":{` + many(65, numbered) + `}}`, `attributes has 65 entries: the limit is 64`},

	{`{"kind":` + strings.Repeat("[", 20000), `exceeded max depth`},
}

func TestBadBodies(t *testing.T) {
	s := serve(t, nil)
	for _, bad := range badBodies {
		status, header, body := s.do(t, "POST", "/v1/windows", bad.body)
		got := parseAs[Error](t, body)
		if status != http.StatusBadRequest || !strings.Contains(got.Text, bad.want) || strings.Contains(got.Text, "\n") {
			t.Errorf("%.80q: got %d %q, want 400 %q", bad.body, status, got.Text, bad.want)
		}
		if kind := header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%.80q: got Content-Type %q, want application/json", bad.body, kind)
		}
	}
	if len(s.opener.windows) > 0 || len(s.monitor.Windows.Running()) > 0 {
		t.Errorf("got %d windows opened, want none", len(s.opener.windows))
	}
}

func TestGoodBodies(t *testing.T) {
	for _, body := range []string{
		`{"kind":"custom"}`,
		" {\"kind\" : \"custom\"}\r\n",
		`{"kind":"model_load","name":null,"model":null,"epoch":null,"path":null,"pid":null,"run":null,"gpu_ids":null,"traceparent":null,"attributes":null}`,
		`{"kind":"epoch","gpu_ids":[],"attributes":{}}`,
		`{"kind":"epoch","name":"` + strings.Repeat("n", 1024) + `"}`,
		`{"kind":"checkpoint","pid":4194304,"attributes":{"config":"two\nlines","nothing":null}}`,
		`{"kind":"epoch","gpu_ids":[` + many(64, func(int) string { return `"GPU-1"` }) + `],"attributes":{` + many(64,
			numbered) + `}}`,
		`{"kind":"epoch","name":"Größe \ud83d\ude00"}`,
	} {
		if _, err := decode([]byte(body)); err != nil {
			t.Errorf("%.80q: got %v, want no error", body, err)
		}
	}
	a, err := decode([]byte(`{"kind":"epoch","epoch":0,"attributes":{"a":"b","c":null}}`))
	if err != nil || a.Epoch == nil || *a.Epoch != 0 || len(a.Attributes) != 1 || a.Attributes["a"] != "b" {
		t.Errorf("got %+v, %v; want epoch 0 and the attribute a", a, err)
	}
	if w := a.window(&caller{pid: 7}); !w.HasEpoch || w.PID != 7 {
		t.Errorf("got %+v, want an epoch of process 7", w)
	}
}

func TestBodiesOfAnEnd(t *testing.T) {
	s := serve(t, nil)
	for _, c := range []struct {
		body, want string // want is part of the refusal, or ""
		attributes int
	}{
		{body: ""},
		{body: " {} "},
		{body: `{"attributes":null}`},
		{body: `{"failed":true,"attributes":{"a":"b","c":null}}`, attributes: 1},
		{body: `{"attributes":{` + many(64, numbered) + `}}`, attributes: 64},
		{body: `{"attributes":{` + many(65, numbered) + `}}`, want: "attributes has 65 entries: the limit is 64"},
		{body: `{"attributes":{"a":1}}`, want: "attributes must be an object with text values"},
		{body: `{"attributes":{"":"x"}}`, want: `attributes has the key ""`},
		{body: `{"failed":"yes"}`, want: "failed must be true or false, not string"},
		{body: `{"attribute":{}}`, want: `did you mean "attributes"?`},
	} {
		begun, err := s.Begin(t.Context(), Announcement{Kind: window.Custom})
		if err != nil {
			t.Fatal(err)
		}
		s.opener.ended = nil
		status, _, text := s.do(t, "POST", "/v1/windows/"+begun.ID+"/end", c.body)
		switch {
		case c.want != "":
			if got := parseAs[Error](t, text); status != http.StatusBadRequest || !strings.Contains(got.Text, c.want) {
				t.Errorf("%.80q: got %d %q, want 400 %q", c.body, status, got.Text, c.want)
			}
		case status != http.StatusOK || len(s.opener.ended) != 1 || len(s.opener.ended[0]) != c.attributes:
			t.Errorf("%.80q: got %d and the attributes %v, want 200 and %d", c.body, status, s.opener.ended, c.attributes)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, bad := range badBodies {
		f.Add([]byte(bad.body))
	}
	f.Add([]byte(`{"kind":"epoch","name":"n","model":"m","epoch":3,"path":"/p","pid":4,"run":"r","gpu_ids":["GPU-1"],"traceparent":"` + someTrace + `","attributes":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := decode(body)
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || refused.Text == "" ||
				len(refused.Text) > 600 {
				t.Errorf("got %#v, want an *Error of status 400 and at most 600 bytes", err)
			}
			if strings.ContainsAny(err.Error(), "\n\r\x1b") || !utf8.ValidString(err.Error()) {
				t.Errorf("got %q, want one line of valid text", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("%q is not JSON: got no error", body)
		}
		// An accepted announcement is within the limits, and stays the same when it is sent again.
		if len(a.Name) > maxText || len(a.GPUIDs) > maxGPUs || len(a.Attributes) > maxAttributes || !a.Kind.Valid() {
			t.Errorf("got %+v, want an announcement within the limits", a)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(text)
		if err != nil {
			t.Fatalf("%s: got %v, want no error", text, err)
		}
		if same, _ := json.Marshal(again); string(same) != string(text) {
			t.Errorf("got %s, want %s", same, text)
		}
	})
}
