package recording

import (
	"bytes"
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
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered is a round of readings that can be told from every other, and compresses badly.
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

// content is the numbers of the readings in a file, the jobs that it was told of, and its header at its end.
func content(t *testing.T, path string) (rounds []int, followed []string, h Header) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := NewReader(file)
	if err != nil {
		t.Fatal(path, err)
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
		t.Errorf("%s: %v", path, err)
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

// Every part stands alone, none of the readings in them is missing or there twice, and the oldest parts make room.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.gz")
	p, err := Create(path, Header{ID: "id", Host: "h"}, Rotation{MaxSize: 2000, Keep: 4}, never(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Mark{{Op: Follow, ID: "a", Scope: "/a", OwnScope: true}, {Op: Follow, ID: "gone"}, {Op: Leave, ID: "gone"}} {
		if err := p.Write(&Entry{Mark: &m}); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 500
	writeRounds(t, p, 0, rounds)
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	writeRounds(t, p, 0, 1) // passed over
	size, parts := p.Size()
	if found, _ := filepath.Glob(path + "*"); len(found) != 4 || parts < 6 {
		t.Fatalf("%v of %d parts", found, parts)
	}
	var all []int
	for i := range 4 {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		got, followed, h := content(t, name)
		if h.ID != "id" || h.Host != "h" || h.Part != parts-1-i || !slices.Equal(followed, []string{"a"}) {
			t.Errorf("%s: %+v, jobs %v", name, h, followed)
		}
		all = append(got, all...)
		info, err := os.Stat(name)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%s: %v %v", name, info.Mode(), err)
		}
		if i > 0 && (info.Size() < 2000 || info.Size() > 2500) {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		if info.Size() > size {
			t.Errorf("%d bytes in all", size)
		}
	}
	if !inOrder(all) || all[len(all)-1] != rounds-1 {
		t.Errorf("readings %v", all)
	}
}

// With room for all parts nothing is missing, whoever writes.
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
		t.Errorf("%d readings in %d files", len(got), len(found))
	}
}

// What is at the place of a recording is kept when it is one, and refused when it is not.
func TestCreateOverSomething(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	for i := range 4 {
		p, err := Create(path, Header{ID: fmt.Sprint("recording ", i)}, Rotation{Keep: 3}, never(t))
		if err != nil {
			t.Fatal(err)
		}
		writeRounds(t, p, i, i+1)
		if _, err := Create(path, Header{}, Rotation{}, nil); err == nil || !strings.Contains(err.Error(), "another stallspan") {
			t.Errorf("a second one at the same time: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{path, path + ".1", path + ".2"} {
		if got, _, h := content(t, name); h.ID != fmt.Sprint("recording ", 3-i) || !slices.Equal(got, []int{3 - i}) {
			t.Errorf("%s is %+v with %v", name, h, got)
		}
	}
	if _, err := os.Lstat(path + ".3"); err == nil {
		t.Error("more files than are to be kept")
	}

	foreign := filepath.Join(folder, "foreign")
	const text = "somebody's diary"
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
		"foreign": "is no recording", "s": "s.1 is there already and is no recording", ".": "is no ordinary file", "no/such": "folder that exists",
	} {
		if _, err := Create(filepath.Join(folder, name), Header{}, Rotation{}, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{foreign, filepath.Join(folder, "s.1")} {
		if left, err := os.ReadFile(name); err != nil || string(left) != text {
			t.Errorf("%s: %q %v", name, left, err)
		}
	}
	for _, r := range []Rotation{{Keep: 1}, {Keep: -1}, {Keep: MostKeep + 1}, {MaxSize: -1}} {
		if _, err := Create(filepath.Join(folder, "new"), Header{}, r, nil); err == nil {
			t.Errorf("%+v was taken", r)
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
		t.Errorf("%v", left)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("%v %v", info, err)
	}
}

// Where no other file can be begun, the parts follow one another in the same one.
func TestRotationThatCannotRename(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	var mu sync.Mutex
	var told []string
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1500, Keep: 3}, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
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
	if len(told) < 2 || !strings.Contains(told[0], "r.gz.1 is there already and is no recording") {
		t.Errorf("told %q", told)
	}
	old, _, h := content(t, path+".1")
	now, _, last := content(t, path)
	if all := slices.Concat(old, now); !inOrder(all) || len(all) != 140 || h.Part+1 != last.Part {
		t.Errorf("%d rounds in the part %d, %d in %d", len(old), h.Part, len(now), last.Part)
	}
}

// What somebody moves away or puts in the place of a recording is left alone.
func TestRotationOfAFileThatWasMoved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	var told []error // read after Close
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1500, Keep: 3}, func(err error) { told = append(told, err) })
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
	if len(told) == 0 || !strings.Contains(told[0].Error(), "is another file now") {
		t.Errorf("told %v", told)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != "a diary" {
		t.Errorf("%q %v", left, err)
	}
	middle, _, _ := content(t, path+".1")
	rest, _, _ := content(t, path+".moved2")
	if all := slices.Concat(first, middle, rest); len(all) != 200 || !inOrder(all) {
		t.Errorf("%v", all)
	}
}

// Files that lie one behind the other are one recording, as zcat and gzip see them too.
func TestPartsInOneFile(t *testing.T) {
	first := write(t, Header{ID: "i"}, everything())
	second := write(t, Header{ID: "i", Part: 1}, everything())
	r, err := NewReader(bytes.NewReader(slices.Concat(first, second)))
	if err != nil {
		t.Fatal(err)
	}
	var e Entry
	if err := errors.Join(r.Next(&e), r.Next(&e)); err != nil || r.Header().Part != 1 {
		t.Errorf("%v, part %d", err, r.Header().Part)
	}
	for name, other := range map[string][]byte{
		"another recording": write(t, Header{ID: "j"}, everything()), "one without an id": write(t, Header{}, everything()),
		"a newer one": pack(`{"stallspan_recording":99,"id":"i"}` + "\n"),
	} {
		if got, err := all(slices.Concat(first, other)); err == nil || errors.Is(err, io.EOF) || len(got) != 1 {
			t.Errorf("%s behind: %d readings, %v", name, len(got), err)
		}
	}
	// Any number of headers, without a reading: the reader must come to the end of them.
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	_, _ = zip.Write(bytes.Repeat([]byte(`{"stallspan_recording":1,"id":"i"}`+"\n"), 20_000))
	_ = zip.Close()
	if got, err := all(file.Bytes()); !errors.Is(err, io.EOF) || len(got) != 0 {
		t.Errorf("%d readings, %v", len(got), err)
	}
}

// What the drives told last stands at the beginning of each part.
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
		if err := r.Next(&e); err != nil || e.Source != "smart" || len(e.Sample.Drives) != 1 || e.Sample.Drives[0].Finding != "new" {
			t.Errorf("%s begins with %+v: %v", name, e, err)
		}
		_ = file.Close()
	}
}
