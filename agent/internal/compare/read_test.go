package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stallspan/stallspan/internal/explain"
)

func TestReadRealReports(t *testing.T) {
	for name, want := range map[string]struct {
		windows int
		run     bool
		gpu     bool
	}{
		"demo-first": {3, false, true}, "demo-second": {3, false, true},
		"train-disk": {2, true, false}, "train-memory": {2, true, false}, "window": {1, false, false},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "reports", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: got %v, want no error", name, err)
		}
		if len(d.Windows) != want.windows || (d.Run != nil) != want.run || (d.Windows[0].GPU != nil) != want.gpu {
			t.Errorf("%s: got %+v, want %+v", name, d, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	long := `{"windows":[` + strings.Repeat(`{},`, 100_000) + `{}]}`
	for text, want := range map[string]string{
		"":                                    "it is empty",
		"hello":                               "it is not JSON: see byte 1",
		`{"windows":[{"kind":"epoch"`:         "it is cut off, or not JSON",
		`{"windows":[]} {}`:                   "it is not JSON: see byte 16",
		`[]`:                                  "there is an array instead of an object",
		`null`:                                `it has neither "windows" nor "kind"`,
		`{"windows":null}`:                    `it has neither "windows" nor "kind"`,
		`{"windows":[]}`:                      "it has no windows",
		`{"windows":3}`:                       "there is a number instead of an array",
		`{"windows":[null]}`:                  "window 1: kind is missing",
		`{"windows":[{"kind":7}]}`:            "window 1: kind is a number instead of text",
		`{"kind":"epoch"}`:                    "window 1: duration_s is missing",
		`{"kind":"epoch","duration_s":"1"}`:   "duration_s is text instead of a number",
		`{"kind":"epoch","duration_s":-1}`:    "window 1: duration_s is -1, which is not a duration",
		`{"kind":"epoch","duration_s":1e99}`:  "window 1: duration_s is 1e+99, which is not a duration",
		`{"kind":"epoch","duration_s":1e999}`: "duration_s is 1e999 instead of a number",
		`{"kind":"epoch","duration_s":1,"epoch":1.5}`:                                                   "epoch is 1.5 instead of a whole number",
		`{"kind":"epoch","duration_s":1,"speedup_bound":0.5}`:                                           "window 1: speedup_bound is 0.5, but must be at least 1",
		`{"kind":"epoch","duration_s":1,"gpu":{"ids":[]},"stall":{"cpu_s":1}}`:                          "window 1: gpu.ids is empty",
		`{"kind":"epoch","duration_s":1,"disks":[{"read_await_s":-1}]}`:                                 "window 1: disk 1: an await is -1, which is not a duration",
		`{"kind":"epoch","duration_s":1,"disks":[{"read_bytes":-1}]}`:                                   "disk 1: read_bytes is -1 instead of a whole number",
		`{"kind":"epoch","duration_s":1,"process":{"on_cpu_s":2},"stall":{"storage_s":0,"other_s":-1}}`: "window 1: -1 s of other is not a duration",
		`{"kind":"epoch","duration_s":1,"process":{"on_cpu_s":2},"stall":{"storage_s":0,"other_s":0}}`:  "window 1: the parts of its time add up to 2 s, not to its duration of 1 s: was it edited?",
		`{"run":{"kind":"custom"},"windows":[{"kind":"epoch","duration_s":1}]}`:                         "the whole run: duration_s is missing",
		`{"kind":"epoch","duration_s":1,"start":"today"}`:                                               "a time is not as in 2006-01-02T15:04:05Z07:00",
		`{"kind":"epoch","duration_s":1,"start":3}`:                                                     "a time is not as in 2006-01-02T15:04:05Z07:00",
		long: "it has 100001 windows: the maximum is 100000",
		`{"peers":[` + strings.Repeat("{},", 2_000_000) + "{}]}":      "it has over 2000000 objects, the maximum of a report",
		`{"windows":"` + strings.Repeat("x", explain.MaxBytes) + `"}`: "it is larger than 64 MiB, the maximum size of a report",
		strings.Repeat(`{"run":`, 20_000):                             "it is not JSON: see byte 70001",
	} {
		d, err := Read(strings.NewReader(text))
		if err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s: %v", text, err, want, d)
		}
	}
	if _, err := Read(iotest.ErrReader(os.ErrPermission)); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v, want %v", err, os.ErrPermission)
	}
}

func TestReadAccepts(t *testing.T) {
	for text, windows := range map[string]int{
		`{"kind":"epoch","duration_s":1,"of a later version":[{"x":null}]}`:       1,
		`{"windows":[{"kind":"warm_up","duration_s":0}],"run":null}`:              1,
		`{"windows":null,"run":{"kind":"custom","name":"x.py","duration_s":2}}`:   1,
		`{"windows":[{"kind":"epoch","duration_s":1,"gpu":null,"disks":null}]}`:   1,
		"\n\t {\"windows\":[{\"kind\":\"epoch\",\"duration_s\":1}]}\n\n":          1,
		`{"windows":[{"kind":"epoch","duration_s":1,"stall":{"storage_s":0.1}}]}`: 1,
	} {
		d, err := Read(strings.NewReader(text))
		if err != nil || len(d.Windows) != windows {
			t.Errorf("%s: got %v %v, want %d windows", text, d, err, windows)
		}
	}
}

// Every report that can be read can be compared. The result adds up and is valid JSON.
func FuzzRead(f *testing.F) {
	found, err := filepath.Glob("../../../testdata/reports/*.json")
	if err != nil || len(found) == 0 {
		f.Fatalf("got %v %v, want at least one report", found, err)
	}
	var last []byte
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		last = text
	}
	f.Add([]byte(`{"kind":"epoch","epoch":1,"duration_s":1e-300,"gpu":{"ids":["a","b"],"busy_s":0},"stall":{"storage_s":0,"cpu_s":0,"other_s":0}}`))
	f.Add([]byte(`{"windows":[{"kind":"epoch","duration_s":1},{"kind":"epoch","duration_s":1,"disks":[{"name":"a"},{"name":"a"}]}]}`))
	other, err := Read(bytes.NewReader(last))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Read(bytes.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "json:") || strings.Contains(err.Error(), "Go ") {
				t.Errorf("not in our words: %v", err)
			}
			return
		}
		for _, c := range []*Comparison{Compare(d, d), Compare(d, other), Compare(other, d)} {
			if _, err := json.Marshal(c); err != nil {
				t.Errorf("%v: got %+v, want valid JSON", err, c)
			}
			for _, p := range c.Windows {
				for _, part := range p.Parts {
					if part.Difference != part.B-part.A {
						t.Errorf("got %+v, want the difference %v", part, part.B-part.A)
					}
				}
			}
		}
	})
}
