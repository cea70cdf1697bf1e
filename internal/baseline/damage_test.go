package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// grown is the bytes of a file with some history: more than a page of records, pages that are free, and two metas of
// different content.
func grown(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baseline.db")
	for round := range 3 {
		var batch []observation
		for i := range 60 {
			for j := range 10 {
				batch = append(batch, observation{Key(fmt.Sprintf("load/nvme/cold/%03d", i)), time.Duration(1+j+round) * time.Second, false, time.Unix(1e6, 0)})
			}
		}
		err := access{path: path, write: true, until: time.Now().Add(time.Minute)}.do(func(tx *bbolt.Tx) error {
			_, err := apply(tx, batch)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// use does with a file of that content what a program does, and says what came of it: the records that it was judged by,
// and the problems. Whatever is in it, the program goes on, learns, and what was there is there still.
func use(t testing.TB, path string, text []byte) (before map[Key]*Record, told []string) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b := Open(path, func(err error) { told = append(told, err.Error()) })
	before = map[Key]*Record{}
	for key, r := range b.known {
		before[key] = r.clone()
	}
	b.Learn("epoch/new", time.Second, false, time.Now())
	b.Close()
	for _, line := range told {
		if strings.Contains(line, "\n") {
			t.Errorf("more than a line: %q", line)
		}
	}
	kept, _ := filepath.Glob(path + ".*")
	if len(told) != len(kept) || len(told) > 1 {
		t.Errorf("told %q, and kept %q", told, kept)
	}
	for _, name := range kept {
		if was, err := os.ReadFile(name); err != nil || !bytes.Equal(was, text) {
			t.Errorf("%s is not what was there: %v", name, err)
		}
		_ = os.Remove(name)
	}
	all, err := List(path)
	if err != nil || len(Find(all, "new")) != 1 {
		t.Errorf("nothing was learned: %d records, %v", len(all), err)
	}
	_ = os.Remove(path)
	return before, told
}

// A byte that changes anywhere is harmless where nothing refers to it, takes back one transaction where it is in the
// newest meta, and has the file set aside everywhere else. It never ends the program, and no record is another than one
// that was written.
func TestFlippedBytes(t *testing.T) {
	text := grown(t)
	path := filepath.Join(t.TempDir(), "baseline.db")
	whole, told := use(t, path, text)
	if len(told) > 0 || len(whole) != 60 {
		t.Fatalf("%d records, %q", len(whole), told)
	}
	random := rand.New(rand.NewPCG(3, 4))
	tries, aside := 400, 0
	if testing.Short() {
		tries = 60
	}
	for range tries {
		damaged := bytes.Clone(text)
		at := random.IntN(len(damaged))
		if random.IntN(3) == 0 { // where it hurts: the beginnings of pages
			at = random.IntN(len(damaged)/4096)*4096 + random.IntN(96)
		}
		damaged[at] ^= byte(1 << random.IntN(8))
		before, told := use(t, path, damaged)
		aside += len(told)
		if len(told) > 0 && len(before) > 0 {
			t.Fatalf("byte %d: judged by a damaged file", at)
		}
		for key, r := range before {
			n := len(r.Took)
			if len(before) != len(whole) {
				t.Fatalf("byte %d: %d records of %d", at, len(before), len(whole))
			}
			if n != 30 && n != 20 || !reflect.DeepEqual(r.Took, whole[key].Took[:n]) {
				t.Fatalf("byte %d: %s became %+v", at, key, r)
			}
		}
	}
	t.Logf("%d of %d files set aside", aside, tries)
	if aside == 0 {
		t.Error("no file was set aside: the test damages nothing")
	}
}

func TestTruncated(t *testing.T) {
	text := grown(t)
	path := filepath.Join(t.TempDir(), "baseline.db")
	for at := 0; at < len(text); at += 1 + len(text)/60 {
		use(t, path, text[:at])
	}
}

// Pages that hold something else, as after a disk's own fault.
func TestGarbage(t *testing.T) {
	text := grown(t)
	path := filepath.Join(t.TempDir(), "baseline.db")
	random := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		damaged := bytes.Clone(text)
		page := damaged[random.IntN(len(damaged)/4096)*4096:][:4096]
		switch random.IntN(3) {
		case 0:
			clear(page)
		case 1:
			copy(page, damaged[random.IntN(len(damaged)/4096)*4096:][:4096])
		default:
			for i := range page {
				page[i] = byte(random.Uint32())
			}
		}
		use(t, path, damaged)
	}
	for _, content := range []string{"no database", strings.Repeat("x", 1<<16), strings.Repeat("\x00", 1<<16)} {
		if _, told := use(t, path, []byte(content)); len(told) != 1 || !strings.Contains(told[0], ".corrupt-") {
			t.Errorf("%q", told)
		}
	}
}

func TestNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	learned(t, path, 5, "epoch/x")
	err := access{path: path, write: true, until: time.Now().Add(time.Minute)}.do(func(tx *bbolt.Tx) error {
		return tx.Bucket(aboutBucket).Put(versionKey, []byte("7"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := List(path); err == nil || !strings.Contains(err.Error(), "version is 7") {
		t.Errorf("%v", err)
	}
	if len(asides(t, path)) > 0 {
		t.Error("a look set it aside")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if before, told := use(t, path, text); len(before) > 0 || len(told) != 1 || !strings.Contains(told[0], ".newer-7-") {
		t.Errorf("%q", told)
	}
	another(t, path, nil, string(aboutBucket), "baselines2") // nor need a later one have what this one has
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(aboutBucket).Put(versionKey, []byte("2")) })
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if _, told := use(t, path, text); len(told) != 1 || !strings.Contains(told[0], ".newer-2-") {
		t.Errorf("%q", told)
	}
}

// What another program owns is not moved out of its way, however it got to be named here.
func TestForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(path, []byte("import torch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := 0
	b := Open(path, func(error) { told++ })
	b.Learn("epoch/x", time.Second, false, time.Now())
	b.Close()
	if text, err := os.ReadFile(path); err != nil || string(text) != "import torch\n" || told == 0 || len(asides(t, path)) > 0 {
		t.Errorf("%q, %v, told %d times", text, err, told)
	}
	// Nor is another program's bbolt file, whatever it keeps there, nor one that is too large or too empty to be told.
	for name, lay := range foreign {
		path := filepath.Join(t.TempDir(), "etcd-db")
		lay(t, path)
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		b := Open(path, func(err error) { told = append(told, err.Error()) })
		b.Learn("epoch/x", time.Second, false, time.Now())
		b.Close()
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(text, was) || len(asides(t, path)) > 0 {
			t.Errorf("%s: %v, %d bytes of %d, aside %q", name, err, len(text), len(was), asides(t, path))
		}
		if len(told) == 0 || !strings.HasSuffix(told[0], "it is no file of baselines, and stays as it is: name another") {
			t.Errorf("%s: told %q", name, told)
		}
		if _, told := use(t, filepath.Join(t.TempDir(), "baseline.db"), was); len(told) != 1 || !strings.Contains(told[0], ".corrupt-") {
			t.Errorf("%s as baseline.db: %q", name, told)
		}
	}
	if b := Open(t.TempDir(), func(error) { told = -1 }); told != -1 {
		t.Error("a folder was taken for a file")
	} else {
		b.Close()
	}
}

// foreign makes files that other programs may have.
var foreign = map[string]func(*testing.T, string){
	"bbolt":                    func(t *testing.T, path string) { another(t, path, nil, "key", "members") },
	"bbolt without a freelist": func(t *testing.T, path string) { another(t, path, &bbolt.Options{NoFreelistSync: true}, "key") },
	"bbolt with our records":   func(t *testing.T, path string) { another(t, path, nil, string(recordBucket)) },
	"zeros":                    func(t *testing.T, path string) { sparse(t, path, 1<<16) },
	"large":                    func(t *testing.T, path string) { sparse(t, path, largestFile+1) },
}

// another makes a bbolt file with these buckets.
func another(t *testing.T, path string, o *bbolt.Options, buckets ...string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, o)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) (err error) {
		for _, name := range buckets {
			_, made := tx.CreateBucket([]byte(name))
			err = errors.Join(err, made)
		}
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	err := os.WriteFile(path, nil, 0o600)
	if err = errors.Join(err, os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
}

// A file that is cut while it is mapped is a page that cannot be had: bbolt reads it all the same.
func TestCutWhileOpen(t *testing.T) {
	text := grown(t)
	path := filepath.Join(t.TempDir(), "baseline.db")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int32
	a := access{path: path, write: true, until: time.Now().Add(time.Minute), broken: func(*damage) { told.Add(1) }}
	err := a.do(func(tx *bbolt.Tx) error {
		if err := os.Truncate(path, 8192); err != nil {
			return err
		}
		_, err := readAll(tx)
		return err
	})
	var bad *damage
	if !errors.As(err, &bad) || told.Load() == 0 {
		t.Errorf("%v", err)
	}
	learned(t, filepath.Join(t.TempDir(), "baseline.db"), 1, "epoch/x")
}

// FuzzVerify changes bytes of a file: each four of the input are where, and to what.
func FuzzVerify(f *testing.F) {
	text := grown(f)
	f.Add([]byte{0, 0, 24, 1})
	f.Add([]byte{0, 16, 24, 1, 0, 0, 24, 1})
	f.Add([]byte{0, 0x20, 0x0a, 0xff, 0, 0x30, 0x18, 0x7f})
	path := filepath.Join(f.TempDir(), "baseline.db")
	f.Fuzz(func(t *testing.T, edits []byte) {
		damaged := bytes.Clone(text)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])
			damaged[at%len(damaged)] = edits[3]
		}
		use(t, path, damaged)
	})
}
