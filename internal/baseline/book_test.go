package baseline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
)

func TestLearnAndJudge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state/stallspan/baseline.db")
	b := book(t, path)
	for i := range Enough {
		if _, known := b.Usual("epoch/train"); known {
			t.Fatalf("judged by %d", i)
		}
		b.Learn("epoch/train", time.Duration(i+1)*time.Second, false, time.Now())
	}
	b.Learn("epoch/train", time.Hour, true, time.Now())
	b.Learn("epoch/other", time.Hour, true, time.Now()) // slow alone: nothing to compare with
	b.Learn("", time.Hour, false, time.Now())
	usual, known := b.Usual("epoch/train")
	if !known || usual.Median != 3*time.Second || usual.P95 != 5*time.Second || usual.Count != 5 {
		t.Errorf("%+v, %v", usual, known)
	}
	b.Save()
	if all := list(t, path); len(all) != 1 || all[0].Slow != 1 || len(all[0].Took) != 5 {
		t.Errorf("%+v", all)
	}
	b.Close()
	b.Close()

	again := book(t, path)
	defer again.Close()
	if known, ok := again.Usual("epoch/train"); !ok || known != usual {
		t.Errorf("%+v, %v", known, ok)
	}
	for of, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(of); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", of, info.Mode(), err)
		}
	}
}

func TestNilBook(t *testing.T) {
	var b *Book
	b.Learn("epoch/x", time.Second, false, time.Now())
	b.Save()
	b.Close()
	if _, known := b.Usual("epoch/x"); known {
		t.Error("a nil book knows something")
	}
}

// Save waits for five seconds in all, also where the goroutine that writes takes up the work late.
func TestSaveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Book{save: make(chan chan struct{}), done: make(chan struct{})}
		go func() {
			time.Sleep(lastWrite - time.Second)
			<-b.save // and writes for ever
		}()
		began := time.Now()
		if b.Save(); time.Since(began) != lastWrite {
			t.Errorf("it took %v", time.Since(began))
		}
	})
}

// Nothing is made where there is nothing to write.
func TestNothingLearned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stallspan/baseline.db")
	b := book(t, path)
	b.Save()
	b.Close()
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("a folder was made")
	}
	if all := list(t, path); len(all) != 0 {
		t.Error(all)
	}
}

// What another program has written is seen, and what is pending stays.
func TestRefresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	b := book(t, path)
	defer b.Close()
	learned(t, path, 5, "epoch/other")
	b.Learn("epoch/own", time.Second, false, time.Now())
	b.Save()
	if _, known := b.Usual("epoch/other"); !known {
		t.Error("not seen")
	}
	if all := list(t, path); len(all) != 2 {
		t.Errorf("%+v", all)
	}
}

// The keys that were seen longest ago go, and a key's observations are no more than are kept.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	var batch []observation
	for i := range MostKeys + 100 {
		batch = append(batch, observation{Key(fmt.Sprintf("epoch/%05d", i)), time.Second, false, time.Unix(int64(1e6-i), 0)})
	}
	for range 2 * Kept {
		batch = append(batch, observation{"epoch/00000", time.Minute, false, time.Unix(1e6, 0)})
	}
	write := func() {
		err := access{path: path, write: true, until: time.Now().Add(time.Minute)}.do(func(tx *bbolt.Tx) error {
			_, err := apply(tx, batch)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		write()
	}
	all := list(t, path)
	if len(all) != MostKeys || all[0].Key != "epoch/00000" || all[MostKeys-1].Key != "epoch/04095" || len(all[0].Took) != Kept {
		t.Errorf("%d keys, from %s to %s", len(all), all[0].Key, all[len(all)-1].Key)
	}
	again, err := os.Stat(path)
	if err != nil || again.Size() > largestFile/4 || again.Size() > 4*info.Size() {
		t.Errorf("the file grew from %d to %d bytes, %v", info.Size(), again.Size(), err)
	}
}

func TestPendingIsBounded(t *testing.T) {
	folder := t.TempDir()
	var mu sync.Mutex
	var told []string
	b := Open(filepath.Join(folder, "file/baseline.db"), func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	})
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil { // no folder can be made there
		t.Fatal(err)
	}
	for i := range 3 * mostPending {
		b.Learn("epoch/x", time.Duration(i+1), false, time.Now())
	}
	b.Close()
	if len(b.pending) != mostPending {
		t.Errorf("%d wait", len(b.pending))
	}
	if text := strings.Join(told, "\n"); len(told) != 2 || !strings.Contains(text, "as fast as") || !strings.Contains(text, "cannot be written") {
		t.Errorf("told %q", text)
	}
}

// What can be neither read nor written for one reason is told once, and what that means is told as it is.
func TestToldOnce(t *testing.T) {
	folder := t.TempDir()
	foreign, fresh := filepath.Join(folder, "notes.txt"), filepath.Join(folder, "notes.txt/baseline.db")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		foreign: "cannot be read, so windows are not compared with earlier ones there: ",
		folder:  "cannot be read, so windows are not compared with earlier ones there: it is no file",
	} {
		var told []string
		b := Open(path, func(err error) { told = append(told, err.Error()) })
		b.Learn("epoch/x", time.Second, false, time.Now())
		b.Save()
		b.Close()
		if len(told) != 1 || !strings.Contains(told[0], want) {
			t.Errorf("%s: told %q", path, told)
		}
	}
	b := &Book{path: fresh, known: records{}, tell: func(err error) {
		if !strings.Contains(err.Error(), "cannot be written, so what was learned now is lost: ") {
			t.Error(err)
		}
	}}
	b.Learn("epoch/x", time.Second, false, time.Now())
	b.flush()
}

// A file that cannot be used comes with what to do.
func TestListAdvises(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	learned(t, path, 1, "epoch/x")
	err := access{path: path, write: true, until: time.Now().Add(time.Minute)}.do(func(tx *bbolt.Tx) error {
		return tx.Bucket(aboutBucket).Put(versionKey, []byte("7"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := List(path); err == nil || !strings.HasSuffix(err.Error(), "its version is 7, and this program knows 1: update stallspan, or name another file with --file") {
		t.Error(err)
	}
}

func TestReset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.db")
	learned(t, path, 5, "epoch/a", "load/ssd/cold/b", "load/ssd/warm/b", "load/ssd/warm//x/y (5 bytes)")
	for text, want := range map[string]int{"a": 1, "b": 2, "/x/y": 1, "load/ssd/warm/b": 1, "none": 0} {
		if found := Find(list(t, path), text); len(found) != want {
			t.Errorf("%s: %d", text, len(found))
		}
	}
	b := book(t, path)
	defer b.Close()
	gone, err := Reset(path, func(e Entry) bool { return e.Means("b") })
	if err != nil || len(gone) != 2 || len(list(t, path)) != 2 {
		t.Errorf("%v, %v", gone, err)
	}
	b.refresh(time.Minute)
	if _, known := b.Usual("load/ssd/cold/b"); known {
		t.Error("what was reset is still known")
	}
	if gone, err := Reset(filepath.Join(t.TempDir(), "x/none.db"), func(Entry) bool { return true }); err != nil || len(gone) != 0 {
		t.Errorf("%v, %v", gone, err)
	}
}

// Twenty programs that start together all have their windows learned.
func TestManyPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stallspan/baseline.db")
	const programs, each = 20, 3
	var all sync.WaitGroup
	for range programs {
		all.Go(func() {
			out, err := other(t, "learner", path, "STALLSPAN_TEST_KEY=shared", fmt.Sprint("STALLSPAN_TEST_COUNT=", each)).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	if entries := list(t, path); len(entries) != 1 || len(entries[0].Took) != programs*each {
		t.Errorf("%+v", entries)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

// A program that is killed at any moment leaves a file that opens, and in which every record is whole.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stallspan/baseline.db")
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for i := range rounds {
		cmd := other(t, "writer", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+7*i%90) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, e := range list(t, path) {
			for _, took := range e.Took {
				if took != time.Second {
					t.Fatalf("%+v", e)
				}
			}
		}
	}
	if left := asides(t, path); len(left) > 0 || len(list(t, path)) == 0 {
		t.Errorf("set aside: %q, and %d records", left, len(list(t, path)))
	}
	learned(t, path, 1, "epoch/after")
}

func TestNotAllowed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere: run as another user to see what happens where one may not")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "baseline.db")
	learned(t, path, 5, "epoch/x")
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(folder, 0o700) }()
	told := 0
	b := Open(path, func(error) { told++ })
	if _, known := b.Usual("epoch/x"); !known {
		t.Error("a file that can be read is not used")
	}
	b.Learn("epoch/x", time.Second, false, time.Now())
	b.Close()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// BenchmarkOpen is what a program pays at its start for a file that is full.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "baseline.db")
	var batch []observation
	for i := range MostKeys {
		for j := range Kept {
			batch = append(batch, observation{Key(fmt.Sprintf("load/nvme/cold/model-%05d", i)), time.Duration(1e9 + i*j), false, time.Unix(1e6, 0)})
		}
	}
	err := access{path: path, write: true, until: time.Now().Add(time.Minute)}.do(func(tx *bbolt.Tx) error {
		_, err := apply(tx, batch)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Open(path, func(err error) { b.Error(err) }).Close()
	}
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size()), "B/file")
	}
}

// BenchmarkSave is what one window costs at the end of a run, with the disk's own flush.
func BenchmarkSave(b *testing.B) {
	book := Open(filepath.Join(b.TempDir(), "baseline.db"), func(err error) { b.Error(err) })
	defer book.Close()
	for b.Loop() {
		book.Learn("epoch/train", time.Second, false, time.Now())
		book.Save()
	}
}
