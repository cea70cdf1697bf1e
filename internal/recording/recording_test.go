package recording

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

var morning = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func at(mono time.Duration) sample.Stamp { return sample.Stamp{Mono: mono, Wall: morning.Add(mono)} }

// everything is a reading in which no field is zero, so that a field that is not written shows.
func everything() *sample.Sample {
	s := &sample.Sample{At: at(time.Minute), GPUProcessesRead: true}
	for _, list := range []any{
		&s.Disks, &s.Pressures, &s.Cores, &s.Jobs, &s.Processes, &s.GPUs, &s.GPUProcesses, &s.GPUDetails,
	} {
		slice := reflect.ValueOf(list).Elem()
		slice.Set(reflect.MakeSlice(slice.Type(), 1, 1))
		fill(slice.Index(0))
	}
	fill(reflect.ValueOf(&s.DriverUse).Elem())
	return s
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if moment, ok := v.Addr().Interface().(*time.Time); ok {
			*moment = morning
			return
		}
		if values, ok := v.Addr().Interface().(*sample.GPUValues); ok {
			for q := range sample.GPUQuantities {
				values.Set(q, 2.5)
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("a <b> \n ü")
	case reflect.Float64:
		v.SetFloat(2.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v"}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	default:
		v.SetUint(9)
	}
}

// Marks come back as they were written, between the readings.
func TestMarks(t *testing.T) {
	var began Mark
	fill(reflect.ValueOf(&began).Elem())
	stamp := at(time.Minute)
	began.Op, began.At = Begin, &stamp
	written := []Entry{{Source: "a", Edge: 7, Sample: everything()}, {Mark: &began}, {Mark: &Mark{Op: Tick}},
		{Mark: &Mark{Op: End, ID: "x", At: &stamp, Edge: 8, Outcome: window.Outcome{Unfinished: true},
			Readers: []window.Reader{{PID: 7, Name: "cp", Group: "backup", Bytes: 9, Own: true}, {PID: 8, Bytes: 1}},
			Limits:  &window.Limits{Set: 1, Factor: 1.5, Baseline: &window.Baseline{Median: 2, P95: 3, Count: 4}}}}}
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range written {
		if err := w.Write(&written[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []Entry{{}, {Mark: &Mark{Op: "dance"}}, {Mark: &Mark{Op: Tick}, Sample: everything()}} {
		if w.Write(&bad) == nil {
			t.Errorf("%+v: got no error, want one", bad)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range written {
		var e Entry
		if err := r.Next(&e); err != nil || !reflect.DeepEqual(e, written[i]) {
			t.Errorf("got %+v, %v, want %+v", e, err, written[i])
		}
	}
}

func write(t *testing.T, h Header, samples ...*sample.Sample) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if err := w.Write(&Entry{Source: "some", Sample: s}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// all reads the readings of a file, to its end or to what is wrong with it.
func all(file []byte) (samples []sample.Sample, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		var e Entry
		if err := r.Next(&e); err != nil {
			if again := r.Next(&e); again != err { //nolint:errorlint // the same error, not one like it
				return samples, errors.New("the error did not stay")
			}
			return samples, err
		}
		if e.Sample != nil {
			samples = append(samples, *e.Sample)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	header := Header{Host: "h", Kernel: "k", Boot: morning, Interval: time.Second, Version: "v"}
	nothing := &sample.Sample{At: at(time.Second)}
	timeless := &sample.Sample{GPUs: []sample.GPU{{ID: "x"}}}
	file := write(t, header, everything(), nothing, timeless, everything())
	got, err := all(file)
	if !errors.Is(err, io.EOF) || len(got) != 2 {
		t.Fatalf("got %d readings, %v, want 2 and EOF", len(got), err)
	}
	if !reflect.DeepEqual(&got[1], everything()) {
		t.Errorf("got %+v, want %+v", got[1], everything())
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	header.Format = Format
	if r.Header() != header {
		t.Errorf("got the header %+v, want %+v", r.Header(), header)
	}
}

// A recording that is cut anywhere returns the first readings without a gap, and then ErrCut.
func TestCutOff(t *testing.T) {
	var samples []*sample.Sample
	for i := range 20 {
		at := at(time.Duration(i) * 400 * time.Millisecond)
		samples = append(samples, &sample.Sample{At: at, GPUs: []sample.GPU{{ID: "g"}}})
	}
	file := write(t, Header{}, samples...)
	longest := 0
	for n := range file {
		got, err := all(file[:n])
		if got == nil && errors.Is(err, ErrForeign) {
			continue // not even the first line
		}
		if !errors.Is(err, ErrCut) {
			t.Fatalf("%d of %d bytes: got %v, want %v", n, len(file), err, ErrCut)
		}
		if len(got) < longest {
			t.Fatalf("%d of %d bytes: got %d readings, want at least %d", n, len(file), len(got), longest)
		}
		longest = len(got)
		for i := range got {
			if !got[i].At.Wall.Equal(samples[i].At.Wall) {
				t.Fatalf("%d of %d bytes: reading %d: got %v, want %v", n, len(file), i, got[i].At.Wall, samples[i].At.Wall)
			}
		}
	}
	if longest != len(samples) {
		t.Errorf("all but the last byte: got %d readings, want %d", longest, len(samples))
	}
}

// Readings older than a second are in the file, also if the writer crashes.
func TestCrash(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{})
	if err != nil {
		t.Fatal(err)
	}
	const step = 100 * time.Millisecond
	for i := range 95 {
		s := &sample.Sample{At: at(time.Hour + time.Duration(i)*step), GPUs: []sample.GPU{{ID: "g", Busy: step}}}
		if err := w.Write(&Entry{Source: "gpu", Sample: s}); err != nil {
			t.Fatal(err)
		}
		got, err := all(file.Bytes())
		if !errors.Is(err, ErrCut) || i+1-len(got) > int(time.Second/step) {
			t.Fatalf("after %d readings: got %d, %v, want all but the last second", i+1, len(got), err)
		}
	}
}

func pack(text string) []byte {
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	_, _ = zip.Write([]byte(text))
	_ = zip.Close()
	return file.Bytes()
}

const (
	begin = `{"stallspan_recording":1}` + "\n"
	good  = `{"source":"gpu","sample":{"at":{"mono":1,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g"}]}}` + "\n"
)

func TestRefused(t *testing.T) {
	corrupt := write(t, Header{}, everything())
	corrupt[len(corrupt)-8] ^= 1 // its checksum
	for name, test := range map[string]struct {
		file  []byte
		given int
		says  string
	}{
		"empty":             {nil, 0, "not a recording"},
		"not packed":        {[]byte(begin + good), 0, "not a recording"},
		"an empty archive":  {pack(""), 0, "not a recording"},
		"other lines":       {pack("hello\nworld\n"), 0, "not a recording"},
		"other JSON":        {pack(`{"source":"gpu"}` + "\n"), 0, "not a recording"},
		"version 0":         {pack(`{"stallspan_recording":0}` + "\n"), 0, "not a recording"},
		"the future":        {pack(`{"stallspan_recording":2,"boot":5}` + "\n" + good), 0, "format 2"},
		"a damaged header":  {pack(`{"stallspan_recording":1,"interval":"soon"}` + "\n"), 0, "first line is damaged"},
		"an odd boot":       {pack(`{"stallspan_recording":1,"boot":"9999-01-01T00:00:00Z"}` + "\n"), 0, "9999"},
		"a line cut off":    {pack(begin + good + good[:40]), 1, "cut off"},
		"no JSON":           {pack(begin + good + "{\n"), 1, "damaged at line 3"},
		"a blank line":      {pack(begin + "\n"), 0, "damaged at line 2"},
		"no source":         {pack(begin + good + `{"sample":{}}` + "\n"), 1, "neither a reading"},
		"no sample":         {pack(begin + `{"source":"gpu"}` + "\n"), 0, "neither a reading"},
		"no time":           {pack(begin + `{"source":"gpu","sample":{}}` + "\n"), 0, "no time"},
		"an unknown mark":   {pack(begin + `{"mark":{"op":"dance"}}` + "\n"), 0, "neither a reading"},
		"no window":         {pack(begin + `{"mark":{"op":"begin","at":{"mono":1,"wall":"2026-01-02T03:04:05Z"}}}` + "\n"), 0, "neither a reading"},
		"an end at no time": {pack(begin + `{"mark":{"op":"end","id":"x"}}` + "\n"), 0, "neither a reading"},
		"an edge of 1066":   {pack(begin + `{"mark":{"op":"edge","at":{"mono":1,"wall":"1066-01-02T03:04:05Z"}}}` + "\n"), 0, "no time"},
		"negative limits":   {pack(begin + `{"mark":{"op":"end","at":{"mono":1,"wall":"2026-01-02T03:04:05Z"},"limits":{"usual":{"p95":-1}}}}` + "\n"), 0, "negative"},
		"negative time":     {pack(begin + strings.Replace(good, `"mono":1`, `"mono":-1`, 1)), 0, "no time"},
		"another recording": {append(pack(begin+good), pack(begin+good)...), 1, "damaged at line 3"},
		"a long line":       {pack(begin + good + strings.Repeat("x", maxLine) + "\n"), 1, "longer than 16 MiB"},
		"many values":       {pack(begin + `{"source":"x","sample":{"disks":[{}` + strings.Repeat(",{}", maxCommas) + "]}}\n"), 0, "values"},
		"wrong checksum":    {corrupt, 1, "damaged after line 2"},
	} {
		got, err := all(test.file)
		oneLine := err != nil && !strings.Contains(err.Error(), "\n")
		if !oneLine || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want one line with %q", name, err, test.says)
		}
		if len(got) != test.given {
			t.Errorf("%s: got %d readings, want %d", name, len(got), test.given)
		}
	}
}

// Unknown keys in a line of the same format are from a newer program, and ignored.
func TestUnknownFields(t *testing.T) {
	got, err := all(pack(begin + strings.Replace(good, `"gpus"`, `"novel":[1],"gpus"`, 1)))
	if len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d readings, %v, want 1 and EOF", len(got), err)
	}
}

// A small file that unpacks to a very large one is read up to the limit.
func TestBounded(t *testing.T) {
	b := &bounded{strings.NewReader("0123456789"), 4}
	text, err := io.ReadAll(b)
	if string(text) != "0123" || err == nil {
		t.Errorf("got %q, %v, want the first 4 bytes and an error", text, err)
	}
}

type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestWriterErrors(t *testing.T) {
	if _, err := NewWriter(&fullDisk{}, Header{}); err == nil {
		t.Error("a new recording on a full disk: got no error")
	}
	w, err := NewWriter(&fullDisk{200}, Header{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := everything()
		s.At.Mono += time.Duration(i) * time.Minute
		err = w.Write(&Entry{Source: "some", Sample: s})
	}
	if err == nil || w.Close() == nil {
		t.Error("a write to a full disk: got no error")
	}
	w, err = NewWriter(io.Discard, Header{})
	if err != nil {
		t.Fatal(err)
	}
	huge := &sample.Sample{At: at(0), GPUs: []sample.GPU{{ID: strings.Repeat("x", maxLine)}}}
	if err := w.Write(&Entry{Source: "gpu", Sample: huge}); !errors.Is(err, errLong) {
		t.Errorf("a huge reading: got %v, want %v", err, errLong)
	}
	if err := w.Write(&Entry{Source: "some", Sample: everything()}); err != nil {
		t.Errorf("after a huge reading: got %v, want nil", err)
	}
	w.size = maxBytes
	if err := w.Write(&Entry{Source: "some", Sample: everything()}); !errors.Is(err, ErrFull) {
		t.Errorf("a full recording: got %v, want %v", err, ErrFull)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.Write(&Entry{Source: "some", Sample: everything()}); err != nil {
		t.Errorf("a write to a closed recording: got %v, want none", err)
	}
}

func TestThisMachine(t *testing.T) {
	h := ThisMachine(morning, time.Second, "v")
	if name, err := os.Hostname(); err == nil && h.Host != name {
		t.Errorf("got the host %q, want %q", h.Host, name)
	}
}

// FuzzReader reads any file, and what is given must hold what a reading promises.
func FuzzReader(f *testing.F) {
	for _, text := range []string{"", begin, begin + good, begin + good + good[:30], "{}\n", begin + `{"source":"disk","sample":{"at":{"mono":1,"wall":"2026-01-02T03:04:05Z"},"disks":[{"name":"vda","reads":-1}]}}` + "\n"} {
		f.Add([]byte(text), true)
		f.Add(pack(text), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		if packed {
			data = pack(string(data))
		}
		samples, err := all(data)
		if err == nil {
			t.Error("a recording without an end")
		}
		for i := range samples {
			if err := checkStamp(samples[i].At); err != nil {
				t.Error(err)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	s := &sample.Sample{Disks: make([]sample.Disk, 10)}
	w, err := NewWriter(io.Discard, Header{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.At = at(s.At.Mono + 100*time.Millisecond)
		for d := range s.Disks {
			s.Disks[d].ReadIOs += 17
		}
		if err := w.Write(&Entry{Source: "disk", Sample: s}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	file, err := os.ReadFile(fixture.File(b, "recordings", "accelerator.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := all(file); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
}
