package baseline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestLearnAndCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state/stallspan/baseline.json")
	s := opened(t, path)
	for i := range MinCount {
		if _, known := s.Baseline("epoch/train"); known {
			t.Fatalf("got a baseline of %d durations, want none under %d", i, MinCount)
		}
		s.Learn("epoch/train", time.Duration(i+1)*time.Second, false, time.Now())
	}
	s.Learn("epoch/train", time.Hour, true, time.Now())
	s.Learn("epoch/other", time.Hour, true, time.Now()) // slow alone: no record
	s.Learn("", time.Hour, false, time.Now())
	usual, known := s.Baseline("epoch/train")
	if !known || usual.Median != 3*time.Second || usual.P95 != 5*time.Second || usual.Count != 5 {
		t.Errorf("got %+v, %v; want a median of 3 s and a p95 of 5 s of 5", usual, known)
	}
	s.Save()
	if all := list(t, path); len(all) != 1 || all[0].Slow != 1 || len(all[0].Durations) != 5 {
		t.Errorf("got %+v, want one record with 5 durations and 1 slow in a row", all)
	}
	s.Close()
	s.Close()

	again := opened(t, path)
	defer again.Close()
	if got, known := again.Baseline("epoch/train"); !known || got != usual {
		t.Errorf("opened again: got %+v, %v; want %+v", got, known, usual)
	}
}

// The goroutine of a Store that panics pauses and starts again. What was learned meanwhile is in the file in the end.
func TestPanicOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), fileName)
		first := newStore(path, func(err error) { t.Error(err) })
		go first.run(make(chan struct{}))
		first.Learn("epoch/before", time.Second, false, time.Now())
		first.Save()
		first.Close()

		before, began, checks := sample.Panics(), time.Now(), 0
		var reports []string
		s := newStore(path, func(err error) { reports = append(reports, err.Error()) })
		s.file.Check = func(records) error {
			if checks++; checks <= 3 {
				panic("for the test")
			}
			return nil
		}
		loaded := make(chan struct{})
		go s.run(loaded)
		<-loaded
		s.Learn("epoch/after", time.Second, false, time.Now())
		time.Sleep(10 * time.Second)
		synctest.Wait() // what the other goroutine did is visible from here on
		if _, known := s.known["epoch/before"]; !known {
			t.Errorf("got %v after %v, want the baselines of the file", s.known, time.Since(began))
		}
		s.Close()
		if all := list(t, path); len(all) != 2 {
			t.Errorf("got %+v in the file, want both baselines", all)
		}
		got := sample.Panics() - before
		if got != 3 || len(reports) != 3 || !strings.Contains(reports[0], "a bug in stallspan") {
			t.Errorf("got %d panics, reports %q; want 3 of each", got, reports)
		}
	})
}

// A Store that always panics ends, and takes no program with it.
func TestLastPanicOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), fileName)
		reports := 0
		s := newStore(path, func(error) { reports++ })
		s.file = nil
		go s.run(make(chan struct{}))
		s.Learn("epoch/x", time.Second, false, time.Now())
		s.Save()
		s.Close()
		if reports == 0 {
			t.Error("got no report, want that it is a bug")
		}
	})
}

// A key of a clock that was years ahead ages like the others.
func TestClockInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), fileName)
		s := opened(t, path)
		s.Learn(epochOf("uid 1000", "future"), time.Second, false, time.Now().AddDate(11, 0, 0))
		s.Close()
		if all := list(t, path); len(all) != 1 || all[0].Last.After(time.Now()) {
			t.Errorf("got %+v, want the present time", all)
		}
		time.Sleep(time.Minute)
		s = opened(t, path)
		for i := range MaxEach {
			s.Learn(epochOf("uid 1000", fmt.Sprint(i)), time.Second, false, time.Now())
		}
		s.Close()
		for _, e := range list(t, path) {
			if strings.Contains(string(e.Key), "future") {
				t.Errorf("got %s, want it dropped for newer ones", e.Key)
			}
		}
	})
}

func TestNilStore(t *testing.T) {
	var s *Store
	s.Learn("epoch/x", time.Second, false, time.Now())
	s.Save()
	s.Close()
	if usual, known := s.Baseline("epoch/x"); known {
		t.Errorf("got %+v, want nothing", usual)
	}
}

// Save waits for 5 s in all, even if the goroutine that writes starts late.
func TestSaveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{save: make(chan chan struct{}), done: make(chan struct{})}
		go func() {
			time.Sleep(maxWait - time.Second)
			<-s.save // and never finishes
		}()
		start := time.Now()
		if s.Save(); time.Since(start) != maxWait {
			t.Errorf("got %v, want %v", time.Since(start), maxWait)
		}
	})
}

func TestNothingLearned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stallspan/baseline.json")
	s := opened(t, path)
	s.Save()
	s.Close()
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("a folder was created")
	}
	if all := list(t, path); len(all) != 0 {
		t.Errorf("got %+v, want nothing", all)
	}
}

// A store sees what other processes write, and keeps what is pending.
func TestWritesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	s := opened(t, path)
	defer s.Close()
	learned(t, path, 5, "epoch/other")
	s.Learn("epoch/own", time.Second, false, time.Now())
	s.Save()
	if _, known := s.Baseline("epoch/other"); !known {
		t.Error("got no baseline of epoch/other")
	}
	if all := list(t, path); len(all) != 2 {
		t.Errorf("got %+v, want 2 records", all)
	}
}

// filled returns a store with as many records as fit and 100 more, all pending.
func filled(path string, durations int) *Store {
	s := newStore(path, func(error) {})
	s.pending.Size = math.MaxInt
	for i := range MaxKeys + 100 {
		key := Key(fmt.Sprintf("load/nvme/cold/model-%05d", i))
		for j := range durations {
			took := time.Duration(1e9 + i*j)
			s.pending.Add("", 1, observation{key, took, false, time.Unix(int64(1e6-i), 0)})
		}
	}
	return s
}

func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	s := filled(path, 1)
	for range 2 * MaxCount {
		s.pending.Add("", 1, observation{"load/nvme/cold/model-00000", time.Minute, false, time.Unix(1e6, 0)})
	}
	s.write()
	all := list(t, path)
	first, last := all[0], all[len(all)-1]
	if len(all) != MaxKeys || first.Key.Name() != "model-00000" || last.Key.Name() != "model-04095" ||
		len(first.Durations) != MaxCount {
		t.Errorf("got %d keys from %s with %d durations to %s; want %d from model-00000 with %d to model-04095",
			len(all), first.Key, len(first.Durations), last.Key, MaxKeys, MaxCount)
	}
}

func TestPendingIsBounded(t *testing.T) {
	folder := t.TempDir()
	var mu sync.Mutex
	var reports []string
	s := Open(filepath.Join(folder, "file/baseline.json"), func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, err.Error())
	})
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil { // so that no folder can be created
		t.Fatal(err)
	}
	for i := range 3 * maxPending {
		s.Learn("epoch/x", time.Duration(i+1), false, time.Now())
	}
	s.Close()
	if n := s.pending.Len(); n != maxPending {
		t.Errorf("got %d pending, want %d", n, maxPending)
	}
	text := strings.Join(reports, "\n")
	if len(reports) != 2 || !strings.Contains(text, "as fast as") || !strings.Contains(text, "cannot be written") {
		t.Errorf("got reports %q, want one of the overflow and one of the write", text)
	}
}

// A client whose windows end faster than the file is written costs another none of its windows, and no memory.
func TestPendingOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	s := newStore(path, func(error) {})
	for i := range 20 * maxPending {
		s.Learn(epochOf("uid 1", fmt.Sprint(i)), time.Second, false, time.Unix(int64(i), 0))
		if i%maxPending == 0 {
			s.Learn(epochOf("uid 2", "run"), time.Second, false, time.Unix(int64(i), 0))
		}
	}
	if n := len(s.known); n > MaxKeys+maxPending {
		t.Errorf("got %d keys in memory, want at most %d", n, MaxKeys+maxPending)
	}
	s.write()
	for _, r := range list(t, path) {
		if r.Key == epochOf("uid 2", "run") && len(r.Durations) == 20 {
			return
		}
	}
	t.Error("got fewer than 20 windows of the other client, want all")
}

// If a file can neither be read nor written for the same reason, one report is enough.
func TestReportedOnce(t *testing.T) {
	folder := t.TempDir()
	foreign := filepath.Join(folder, "train.py")
	if err := os.WriteFile(foreign, []byte("import torch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		foreign: "cannot be read, so windows are not compared with its baselines: it is not a state file",
		folder:  "cannot be read, so windows are not compared with its baselines: it is not a regular file",
	} {
		var reports []string
		s := Open(path, func(err error) { reports = append(reports, err.Error()) })
		s.Learn("epoch/x", time.Second, false, time.Now())
		s.Save()
		s.Close()
		if len(reports) != 1 || !strings.Contains(reports[0], want) {
			t.Errorf("%s: got reports %q, want one with %q", path, reports, want)
		}
	}
	if text, err := os.ReadFile(foreign); err != nil || string(text) != "import torch\n" {
		t.Errorf("got %q, %v; want the file as it was", text, err)
	}
}

// A file that could not be read is read again, even if it did not change.
func TestReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	learned(t, path, 5, "epoch/x")
	reports := 0
	s := newStore(path, func(error) { reports++ })
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if s.read(); reports != 1 || !s.file.Changed() {
		t.Errorf("got %d reports, changed %v; want 1, true", reports, s.file.Changed())
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+"-away", path)); err != nil {
		t.Fatal(err)
	}
	s.read()
	if _, known := s.Baseline("epoch/x"); !known || reports != 1 || s.file.Changed() {
		t.Errorf("got known %v, %d reports, changed %v; want true, 1, false", known, reports, s.file.Changed())
	}
}

// A damaged file is renamed when it is opened, with one report, and learning starts over.
func TestDamagedFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, kind string }{
		"cut":               {`{"version":1,"baselines":{`, "corrupt"},
		"newer":             {`{"version":2}`, "newer-2"},
		"other key":         {`{"version":1,"baselines":{"":{}}}`, "corrupt"},
		"null record":       {`{"version":1,"baselines":{"epoch/x":null}}`, "corrupt"},
		"negative duration": {`{"version":1,"baselines":{"epoch/x":{"durations_ns":[-1]}}}`, "corrupt"},
		"garbage":           {"no database", "corrupt"},
	} {
		path := filepath.Join(t.TempDir(), "baseline.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := List(path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: List: got %v, want an error in one line", name, err)
		}
		var reports []string
		s := Open(path, func(err error) { reports = append(reports, err.Error()) })
		s.Learn("epoch/new", time.Second, false, time.Now())
		s.Close()
		kept, err := filepath.Glob(path + "." + c.kind + "-*")
		if err != nil || len(kept) != 1 || len(reports) != 1 || !strings.Contains(reports[0], kept[0]) {
			t.Fatalf("%s: got files %q, %v, reports %q; want one file and one report", name, kept, err, reports)
		}
		if text, err := os.ReadFile(kept[0]); err != nil || string(text) != c.text {
			t.Errorf("%s: got %q, %v; want the old text", name, text, err)
		}
		if all := list(t, path); len(all) != 1 || all[0].Key != "epoch/new" {
			t.Errorf("%s: got %+v, want epoch/new", name, all)
		}
	}
}

func TestListAdvises(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	for text, want := range map[string]string{
		`{"version":7}`: "and this program reads up to 1: update stallspan, or choose another file with --file",
		`{"version":1`:  ": the next run renames it, and learning starts over",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := List(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want ...%s", text, err, want)
		}
	}
}

func TestReset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	learned(t, path, 5, "epoch/a", "load/ssd/cold/b", "load/ssd/warm/b", "load/ssd/warm//x/y (5 bytes)")
	for text, want := range map[string]int{"a": 1, "b": 2, "/x/y": 1, "load/ssd/warm/b": 1, "none": 0} {
		found := slices.DeleteFunc(list(t, path), func(e Entry) bool { return !e.Matches(text) })
		if len(found) != want {
			t.Errorf("%s: got %+v, want %d", text, found, want)
		}
	}
	s := newStore(path, func(err error) { t.Errorf("got report %v, want none", err) })
	s.read()
	deleted, err := Reset(path, func(e Entry) bool { return e.Matches("b") })
	if left := list(t, path); err != nil || len(deleted) != 2 || len(left) != 2 {
		t.Errorf("got %v, %v, and %v left; want 2 and 2", deleted, err, left)
	}
	if !s.file.Changed() {
		t.Error("after a reset: got no change of the file")
	}
	s.read()
	if usual, known := s.Baseline("load/ssd/cold/b"); known {
		t.Errorf("after a reset: got %+v, want nothing", usual)
	}
	missing := filepath.Join(t.TempDir(), "x/none.json")
	if deleted, err := Reset(missing, func(Entry) bool { return true }); err != nil || len(deleted) != 0 {
		t.Errorf("a missing file: got %v, %v; want nothing", deleted, err)
	}
}

// 20 processes that start together all have their windows learned.
func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stallspan/baseline.json")
	const processes, each = 20, 3
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			count := fmt.Sprint("STALLSPAN_TEST_COUNT=", each)
			out, err := other(t, "learner", path, "STALLSPAN_TEST_KEY=shared", count).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("got %v, %s; want no output", err, out)
			}
		})
	}
	all.Wait()
	if entries := list(t, path); len(entries) != 1 || len(entries[0].Durations) != processes*each {
		t.Errorf("got %+v, want one record with %d durations", entries, processes*each)
	}
}

// BenchmarkOpen measures what a full file costs a program at its start.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "baseline.json")
	filled(path, MaxCount).write()
	for b.Loop() {
		Open(path, func(err error) { b.Error(err) }).Close()
	}
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size()), "B/file")
	}
}

// BenchmarkSave measures one window at the end of a run, with the flush of the disk.
func BenchmarkSave(b *testing.B) {
	s := Open(filepath.Join(b.TempDir(), "baseline.json"), func(err error) { b.Error(err) })
	defer s.Close()
	for b.Loop() {
		s.Learn("epoch/train", time.Second, false, time.Now())
		s.Save()
	}
}
