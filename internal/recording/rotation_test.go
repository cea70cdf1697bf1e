package recording

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

// numbered returns a unique round of readings that compresses badly.
func numbered(i int) []Entry {
	id := fmt.Sprintf("%d-%x", i, i*7919*104729)
	return []Entry{
		{Source: "gpu", Sample: &sample.Sample{At: at(time.Duration(i) * time.Second), GPUs: []sample.GPU{{ID: id}}}},
		{Mark: &Mark{Op: Tick}},
	}
}

func writeRounds(t *testing.T, p *Parts, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		for _, e := range numbered(i) {
			if err := p.Write(&e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// content returns the numbers of the readings in a file, the jobs at its start, and its header at its end.
func content(t *testing.T, path string) (rounds []int, followed []string, h Header) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := NewReader(file)
	if err != nil {
		t.Fatalf("%s: got %v, want a recording", path, err)
	}
	var e Entry
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		switch {
		case e.Sample != nil:
			text, _, _ := strings.Cut(e.Sample.GPUs[0].ID, "-")
			i, _ := strconv.Atoi(text)
			rounds = append(rounds, i)
		case e.Mark.Op == Follow:
			followed = append(followed, e.Mark.ID)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("%s: got %v, want EOF", path, err)
	}
	return rounds, followed, r.Header()
}

func inOrder(rounds []int) bool {
	for i := range rounds {
		if rounds[i] != rounds[0]+i {
			return false
		}
	}
	return true
}

func never(t *testing.T) func(error) { return func(err error) { t.Error(err) } }

// Every part is a recording, no reading is missing or repeated, and the oldest parts are removed.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.gz")
	p, err := Create(path, Header{ID: "id", Host: "h"}, Rotation{MaxSize: 2000, Keep: 4}, never(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Mark{
		{Op: Follow, ID: "a", Scope: "/a", OwnScope: true}, {Op: Follow, ID: "gone"}, {Op: Leave, ID: "gone"},
	} {
		if err := p.Write(&Entry{Mark: &m}); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 500
	writeRounds(t, p, 0, rounds)
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 0, 1) // ignored
	size, parts := p.Size()
	if found, _ := filepath.Glob(path + "*"); len(found) != 4 || parts < 6 {
		t.Fatalf("got the files %v of %d parts, want 4 of at least 6", found, parts)
	}
	var all []int
	for i := range 4 {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		got, followed, h := content(t, name)
		if h.ID != "id" || h.Host != "h" || h.Part != parts-1-i || !slices.Equal(followed, []string{"a"}) {
			t.Errorf("%s: got %+v, jobs %v, want part %d with job a", name, h, followed, parts-1-i)
		}
		all = append(got, all...)
		info, err := os.Stat(name)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%s: got %v, %v, want mode 0600", name, info, err)
		}
		if i > 0 && (info.Size() < 2000 || info.Size() > 2500) {
			t.Errorf("%s: got %d bytes, want 2000 to 2500", name, info.Size())
		}
		if info.Size() > size {
			t.Errorf("got %d bytes in all parts, want at least %d", size, info.Size())
		}
	}
	if !inOrder(all) || all[len(all)-1] != rounds-1 {
		t.Errorf("got the readings %v, want all up to %d in order", all, rounds-1)
	}
}

// If all parts are kept, no reading of any goroutine is missing.
func TestRotationOfManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.gz")
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1500, Keep: 1000}, never(t))
	if err != nil {
		t.Fatal(err)
	}
	const writers, rounds = 4, 200
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range rounds {
				for _, e := range numbered(w*rounds + i) {
					if err := p.Write(&e); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(path + "*")
	var got []int
	for _, name := range found {
		part, _, _ := content(t, name)
		got = append(got, part...)
	}
	slices.Sort(got)
	if len(got) != writers*rounds || !inOrder(got) || len(found) < 4 {
		t.Errorf("got %d readings in %d files, want %d in at least 4", len(got), len(found), writers*rounds)
	}
}

// An existing recording at the path is kept; any other file there is an error.
func TestCreateOverSomething(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	for i := range 4 {
		p, err := Create(path, Header{ID: fmt.Sprint("recording ", i)}, Rotation{Keep: 3}, never(t))
		if err != nil {
			t.Fatal(err)
		}
		writeRounds(t, p, i, i+1)
		_, err = Create(path, Header{}, Rotation{}, nil)
		if err == nil || !strings.Contains(err.Error(), "another stallspan") {
			t.Errorf("a second recording at the same time: got %v, want an error", err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{path, path + ".1", path + ".2"} {
		if got, _, h := content(t, name); h.ID != fmt.Sprint("recording ", 3-i) || !slices.Equal(got, []int{3 - i}) {
			t.Errorf("%s: got %+v with %v, want recording %d", name, h, got, 3-i)
		}
	}
	if _, err := os.Lstat(path + ".3"); err == nil {
		t.Error("got 4 files, want 3")
	}

	foreign := filepath.Join(folder, "foreign")
	const text = "a diary"
	if err := os.WriteFile(foreign, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(folder, "s")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "s.1"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"foreign": "is not a recording", "s": "s.1 exists and is not a recording", ".": "is not a regular file",
		"no/such": "folder that exists",
	} {
		_, err := Create(filepath.Join(folder, name), Header{}, Rotation{}, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, says)
		}
	}
	for _, name := range []string{foreign, filepath.Join(folder, "s.1")} {
		if left, err := os.ReadFile(name); err != nil || string(left) != text {
			t.Errorf("%s: got %q, %v, want it unchanged", name, left, err)
		}
	}
	for _, r := range []Rotation{{Keep: 1}, {Keep: -1}, {Keep: MaxKeep + 1}, {MaxSize: -1}} {
		if _, err := Create(filepath.Join(folder, "new"), Header{}, r, nil); err == nil {
			t.Errorf("%+v: got no error, want one", r)
		}
	}
}

func TestCreateOverNothing(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "empty"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(target, nil, 0o644), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	p, err := Create(link, Header{}, Rotation{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	content(t, target)
	if left, _ := filepath.Glob(folder + "/*"); len(left) != 2 {
		t.Errorf("got the files %v, want 2", left)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("got %v, %v, want the link", info, err)
	}
}

// If no other file can be created, the parts follow each other in the same one.
func TestRotationThatCannotRename(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	var mu sync.Mutex
	var warnings []string
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1500, Keep: 3}, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, err.Error())
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".1", []byte("a diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 0, 100)
	if err := p.spool.wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 100, 140)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(warnings) < 2 || !strings.Contains(warnings[0], "r.gz.1 exists and is not a recording") {
		t.Errorf("got the warnings %q, want two for r.gz.1", warnings)
	}
	old, _, h := content(t, path+".1")
	now, _, last := content(t, path)
	if all := slices.Concat(old, now); !inOrder(all) || len(all) != 140 || h.Part+1 != last.Part {
		t.Errorf("got %d rounds in part %d and %d in part %d, want 140 in order", len(old), h.Part, len(now), last.Part)
	}
}

// A part that was moved away, and a file in its place, stay as they are.
func TestRotationOfAFileThatWasMoved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	var warnings []error // read after Close
	warn := func(err error) { warnings = append(warnings, err) }
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1500, Keep: 3}, warn)
	if err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 0, 5)
	if err := errors.Join(p.spool.wait(), os.Rename(path, path+".moved")); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 5, 100)
	if err := p.spool.wait(); err != nil {
		t.Fatal(err)
	}
	first, _, _ := content(t, path+".moved")
	if err := errors.Join(os.Rename(path, path+".moved2"), os.WriteFile(path, []byte("a diary"), 0o600)); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 100, 200)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(warnings) == 0 || !strings.Contains(warnings[0].Error(), "is another file now") {
		t.Errorf("got the warnings %v, want one for another file", warnings)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != "a diary" {
		t.Errorf("got %q, %v, want the diary", left, err)
	}
	middle, _, _ := content(t, path+".1")
	rest, _, _ := content(t, path+".moved2")
	if all := slices.Concat(first, middle, rest); len(all) != 200 || !inOrder(all) {
		t.Errorf("got the rounds %v, want 200 in order", all)
	}
}

// Concatenated files are one recording, as for zcat and gzip.
func TestPartsInOneFile(t *testing.T) {
	first := write(t, Header{ID: "i"}, everything())
	second := write(t, Header{ID: "i", Part: 1}, everything())
	r, err := NewReader(bytes.NewReader(slices.Concat(first, second)))
	if err != nil {
		t.Fatal(err)
	}
	var e Entry
	if err := errors.Join(r.Next(&e), r.Next(&e)); err != nil || r.Header().Part != 1 {
		t.Errorf("got %v, part %d, want part 1", err, r.Header().Part)
	}
	for name, other := range map[string][]byte{
		"another recording": write(t, Header{ID: "j"}, everything()), "one without an id": write(t, Header{}, everything()),
		"a newer one": pack(`{"stallspan_recording":99,"id":"i"}` + "\n"),
	} {
		if got, err := all(slices.Concat(first, other)); err == nil || errors.Is(err, io.EOF) || len(got) != 1 {
			t.Errorf("followed by %s: got %d readings, %v, want 1 and an error", name, len(got), err)
		}
	}
	// Any number of headers without a reading: the reader must reach their end.
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	_, _ = zip.Write(bytes.Repeat([]byte(`{"stallspan_recording":1,"id":"i"}`+"\n"), 20_000))
	_ = zip.Close()
	if got, err := all(file.Bytes()); !errors.Is(err, io.EOF) || len(got) != 0 {
		t.Errorf("got %d readings, %v, want none and EOF", len(got), err)
	}
}

// Each part begins with the last reading of the drives.
func TestRotationKeepsDrives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.gz")
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 2000, Keep: 3}, never(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range []string{"old", "new"} {
		s := sample.Sample{At: sample.Now(), Drives: []sample.Drive{{ID: "1", Device: "sda", Finding: finding}}}
		if err := p.Write(&Entry{Source: "smart", Sample: &s}); err != nil {
			t.Fatal(err)
		}
		s.Drives[0].Finding = "written over"
	}
	writeRounds(t, p, 0, 500)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".1", path + ".2"} {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		var e Entry
		err = r.Next(&e)
		if err != nil || e.Source != "smart" || len(e.Sample.Drives) != 1 || e.Sample.Drives[0].Finding != "new" {
			t.Errorf("%s: got %+v, %v first, want the new finding", name, e, err)
		}
		_ = file.Close()
	}
}

// A recording that cannot be written because of a bug ends with an error.
func TestPanicOfTheSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpool(nil, func(error) {}) // without files
		s.cut()
		if _, err := s.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		err := s.wait()
		if err == nil || !strings.Contains(err.Error(), "a bug in stallspan") || s.close() == nil {
			t.Errorf("got %v, want that it is a bug", err)
		}
	})
}

// recordOnce makes a copy of the test program record two parts at the path that it names.
const recordOnce = "STALLSPAN_TEST_RECORD_ONCE"

func TestMain(m *testing.M) {
	if path := os.Getenv(recordOnce); path != "" {
		recordTwo(path)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	faultKeep = 3 // files
	inPart    = 3 // readings
)

// recordTwo does what a spool's goroutine does, with the parts 3 and 4.
func recordTwo(path string) {
	files := &series{path: path, keep: faultKeep}
	s := &spool{warn: func(err error) { fmt.Println(err) }}
	err := files.open()
	if err == nil {
		err = s.put(files, &piece{bytes: partOf(3)})
	}
	if err == nil {
		err = s.put(files, &piece{begins: true, bytes: partOf(4)})
	}
	if err != nil {
		fmt.Println(err)
	}
}

// partOf returns the n-th part of a recording.
func partOf(n int) []byte {
	var text bytes.Buffer
	w, err := NewWriter(&text, Header{ID: "fault", Part: n})
	for i := range inPart {
		for _, e := range numbered(n*inPart + i) {
			err = cmp.Or(err, w.Write(&e))
		}
	}
	if err = cmp.Or(err, w.Close()); err != nil {
		panic(err)
	}
	return text.Bytes()
}
