package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/trust"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "history")
	w := opened(t, folder, DefaultMaxSize)
	columns := columnsOf("vda", 4)
	want := [][]float64{{1e6, 0, math.NaN(), 5e9}, {0, 1e5, math.NaN(), 3e5}, {2e9, 3e5, 4e3, math.NaN()}}
	for i, values := range want {
		w.Add(Devices, columns, at(i), period, values)
	}
	job := []Column{{Of: Job, ID: "j", Name: "train.py", Quantity: Busy, Step: thousandth}}
	w.Add(Jobs, job, at(0), period, []float64{0.25})
	flush(t, w, at(3))
	w.Add(Devices, columns, at(3), period, want[0])
	window := Entry{Kind: Window, At: at(2).Add(time.Millisecond), Client: "uid 7", Text: json.RawMessage(`{"kind":"epoch"}`)}
	event := Entry{Kind: Event, At: at(3), Text: json.RawMessage(`{"name":"stallspan.gpu.lost"}`)}
	w.AddEntry(window)
	w.AddEntry(event)
	closed(t, w, at(4))

	got := readFolder(t, folder, time.Time{}, time.Time{})
	if got.damaged != 0 || got.cut != 0 {
		t.Errorf("got %d damaged places and %d bytes cut, want none", got.damaged, got.cut)
	}
	if len(got.rows) != 3 {
		t.Fatalf("got %d blocks of rows, want 3", len(got.rows))
	}
	devices := got.rows[0]
	if devices.Group != Devices || devices.Length != period || !slices.Equal(devices.Columns, columns) {
		t.Errorf("got %+v, want the columns %+v", devices, columns)
	}
	for i, values := range want {
		if devices.Starts[i] != at(i).Unix() {
			t.Errorf("interval %d: got the start %d, want %d", i, devices.Starts[i], at(i).Unix())
		}
		for c, v := range values {
			if got := devices.Values[c][i]; got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
				t.Errorf("interval %d, column %d: got %v, want %v", i, c, got, v)
			}
		}
	}
	if r := got.rows[1]; r.Group != Jobs || r.Columns[0].Name != "train.py" || r.Values[0][0] != 0.25 {
		t.Errorf("got %+v, want the job's 0.25", r)
	}
	if len(got.entries) != 2 || got.entries[0].Client != "uid 7" || !got.entries[0].At.Equal(window.At) ||
		string(got.entries[0].Text) != string(window.Text) || got.entries[1].Kind != Event {
		t.Errorf("got the entries %+v, want a window and an event", got.entries)
	}
	for path, want := range map[string]os.FileMode{folder: folderMode | os.ModeDir, w.file.Name(): fileMode} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if !strings.HasPrefix(string(contents(t, w.file.Name())), "stallspan history 001\n") {
		t.Error("got a file without its header")
	}
}

func TestTimesChooseBlocksAndFiles(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	const n = 20_000 // two days and more
	for i := range n {
		w.add(i)
		if i%100 == 99 {
			flush(t, w, at(i+1))
		}
	}
	closed(t, w, at(n))
	if files, err := Files(folder); err != nil || len(files) != 3 {
		t.Errorf("got %d files, %v, want one for each of 3 days", len(files), err)
	}
	wantNumbers(t, "all", readFolder(t, folder, time.Time{}, time.Time{}).numbers, 0, n-1)
	part := readFolder(t, folder, at(10_000), at(10_100)).numbers
	if len(part) < 101 || len(part) > 1200 || part[0] > 10_000 || part[len(part)-1] < 10_100 {
		t.Errorf("got %d intervals from %d on, want those from 10000 to 10100 and few others", len(part), part[0])
	}
}

// A writer that was killed at any byte of its last block loses this block alone, and the next writer removes its rest.
func TestCutAtEachByte(t *testing.T) {
	text, ends := written(t, 4)
	for cut := range text {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		got, err := readFile(bytes.NewReader(text[:cut]), time.Time{}, time.Time{})
		if err != nil || got.damaged != 0 {
			t.Fatalf("cut at %d: got %v and %d damaged places, want none", cut, err, got.damaged)
		}
		wantNumbers(t, "cut", got.numbers, 0, whole-1)
		if cut%7 != 0 {
			continue // the rest takes a while
		}
		folder := t.TempDir()
		if err := os.WriteFile(pathOf(folder, dayOf(began), 1), text[:cut], fileMode); err != nil {
			t.Fatal(err)
		}
		w := opened(t, folder, DefaultMaxSize)
		w.add(whole)
		closed(t, w, at(5))
		again := readFolder(t, folder, time.Time{}, time.Time{})
		wantNumbers(t, "continued", again.numbers, 0, whole)
		if again.damaged != 0 || again.cut != 0 {
			t.Errorf("cut at %d and continued: got %d damaged places and %d bytes cut, want none", cut, again.damaged, again.cut)
		}
	}
}

// A bit that is wrong loses the block that it is in. If that has the columns, it loses the blocks with these columns.
func TestDamage(t *testing.T) {
	text, ends := written(t, 4)
	for i := headerSize; i < len(text); i++ {
		damaged := bytes.Clone(text)
		damaged[i] ^= 0x40
		got, err := readFile(bytes.NewReader(damaged), time.Time{}, time.Time{})
		want := 3
		if i < ends[0] { // the first block of rows, or the columns before it
			want = 0
		}
		if err != nil || len(got.numbers) < want || len(got.numbers) > 3 {
			t.Fatalf("byte %d: got %d intervals, %v, want at least %d", i, len(got.numbers), err, want)
		}
		if got.damaged == 0 && got.cut == 0 {
			t.Fatalf("byte %d: got no damage, want it counted", i)
		}
	}
}

func TestHoleInTheMiddle(t *testing.T) {
	text, ends := written(t, 40)
	clear(text[ends[10]-5 : ends[12]+5])
	got, err := readFile(bytes.NewReader(text), time.Time{}, time.Time{})
	if err != nil || len(got.numbers) != 36 || got.damaged == 0 {
		t.Errorf("got %d intervals, %v and %d damaged places, want 36 intervals", len(got.numbers), err, got.damaged)
	}
}

func TestOtherFiles(t *testing.T) {
	text, _ := written(t, 2)
	newer := bytes.Replace(text, []byte("001"), []byte("002"), 1)
	for name, test := range map[string]struct {
		text []byte
		want error
	}{
		"newer": {newer, ErrNewer}, "foreign": {[]byte("#!/bin/sh\nexit 0, and more than a header\n"), ErrForeign},
		"version 0": {bytes.Replace(text, []byte("001"), []byte("000"), 1), ErrForeign},
	} {
		if _, err := readFile(bytes.NewReader(test.text), time.Time{}, time.Time{}); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		folder := t.TempDir()
		path := pathOf(folder, dayOf(began), 1)
		if err := os.WriteFile(path, test.text, fileMode); err != nil {
			t.Fatal(err)
		}
		w := opened(t, folder, DefaultMaxSize)
		w.add(0)
		closed(t, w, at(1))
		if !bytes.Equal(contents(t, path), test.text) {
			t.Errorf("%s: got the file changed, want it as it was", name)
		}
		if got := filepath.Base(w.file.Name()); got != "2026-11-23.2.history" {
			t.Errorf("%s: got the file %s, want another one of that day", name, got)
		}
	}
	if got, err := readFile(strings.NewReader(""), time.Time{}, time.Time{}); err != nil || len(got.rows) > 0 {
		t.Errorf("an empty file: got %v, want nothing", err)
	}
}

func TestOldFilesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	kept := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(kept, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	const day = int(24 * time.Hour / period)
	for i := range 12 {
		w.add(i * day)
		flush(t, w, at(i*day))
	}
	closed(t, w, at(12*day))
	files, err := Files(folder)
	if err != nil || len(files) != 8 || files[0].Day.Format(time.DateOnly) != "2026-11-27" {
		t.Errorf("got %+v, %v, want the last day and the 7 days before", files, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("another file is gone: %v", err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	folder := t.TempDir()
	const limit = 1 << 20
	w := opened(t, folder, limit)
	noise := newNoise()
	columns := columnsOf("vda", 12)
	n := 0
	for ; n < 60_000; n++ {
		w.Add(Devices, columns, at(n), period, noise.values(len(columns)))
		w.AddEntry(Entry{At: at(n), Text: json.RawMessage(`"` + noise.text(20) + `"`), Lane: "of a"})
		if n%60 == 59 {
			flush(t, w, at(n))
		}
	}
	closed(t, w, at(n))
	files, err := Files(folder)
	total := int64(0)
	for _, f := range files {
		total += f.Size
		if f.Size > limit/fileShare+(64<<10) {
			t.Errorf("%s: got %d bytes, want an eighth of %d", f.Path, f.Size, limit)
		}
	}
	if err != nil || total > limit || total < limit/2 {
		t.Errorf("got %d files of %d bytes, %v, want nearly %d", len(files), total, err, limit)
	}
	all := readFolder(t, folder, time.Time{}, time.Time{})
	last := all.rows[len(all.rows)-1]
	if got := last.Starts[len(last.Starts)-1]; got != at(n-1).Unix() || all.damaged > 0 {
		t.Errorf("got the last interval at %d and %d damaged places, want the newest, at %d", got, all.damaged,
			at(n-1).Unix())
	}
}

// Windows that come too fast do not drive curves out.
func TestWindowsTakeHalfAtMost(t *testing.T) {
	folder := t.TempDir()
	const limit = 1 << 20
	w := opened(t, folder, limit)
	noise := newNoise()
	for i := range 200 {
		w.add(i)
		for range 10 {
			w.AddEntry(Entry{At: at(i), Text: json.RawMessage(`"` + noise.text(400) + `"`), Lane: "of a"})
		}
		flush(t, w, at(i))
	}
	lost := w.Lost()
	closed(t, w, at(200))
	got := readFolder(t, folder, time.Time{}, time.Time{})
	wantNumbers(t, "curves", got.numbers, 0, 199)
	if lost == 0 || len(got.entries)+int(lost) != 2000 || len(got.entries) < 100 {
		t.Errorf("got %d windows and %d lost, want 2000 in all, and some of both", len(got.entries), lost)
	}
	files, err := Files(folder)
	if err != nil || len(files) != 1 || files[0].Size > limit/fileShare {
		t.Errorf("got %+v, %v, want one file of at most an eighth of %d", files, err, limit)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	const n, most = 3000, maxRowsWaiting + maxTextsWaiting/minText
	w := opened(t, t.TempDir(), DefaultMaxSize)
	for i := range n {
		w.add(i)
		w.AddEntry(Entry{At: at(i), Text: json.RawMessage(`"x"`)})
	}
	w.AddEntry(Entry{Kind: Event, Text: make(json.RawMessage, maxText+1)})
	if got := w.waiting(); got > most || uint64(got)+w.Lost() != 2*n+1 {
		t.Errorf("got %d that wait and %d lost, want %d in all, and at most %d", got, w.Lost(), 2*n+1, most)
	}
	var text bytes.Buffer
	if err := w.Copy(&text, time.Time{}, time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := readFile(&text, time.Time{}, time.Time{})
	if err != nil || len(got.numbers) == 0 || got.numbers[len(got.numbers)-1] != n-1 {
		t.Errorf("got %d intervals, %v, want the newest at the end", len(got.numbers), err)
	}
	closed(t, w, at(n))
}

func TestClockThatIsSetBack(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	for _, i := range []int{100, 101, 50, 51} {
		w.add(i)
	}
	closed(t, w, at(102))
	if got := readFolder(t, folder, time.Time{}, time.Time{}); len(got.numbers) != 4 || len(got.rows) != 2 {
		t.Errorf("got the intervals %v in %d blocks, want all 4 in 2", got.numbers, len(got.rows))
	}
}

func TestOneWriter(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	if err := New(Options{Folder: folder}).Open(); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("a second writer: got %v, want it refused", err)
	}
	closed(t, w, at(0))
	closed(t, opened(t, folder, DefaultMaxSize), at(0))
}

func TestLinksAreRefused(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, pathOf(folder, dayOf(began), 1)); err != nil {
		t.Fatal(err)
	}
	w := opened(t, folder, DefaultMaxSize)
	w.add(0)
	if err := w.Flush(stamp(at(1))); err == nil || len(contents(t, target)) > 0 {
		t.Errorf("a link: got %v and %d bytes in its target, want it refused", err, len(contents(t, target)))
	}
}

// A file that someone removes is followed by another one.
func TestFileIsRemoved(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	w.add(0)
	flush(t, w, at(0))
	if err := os.Remove(w.file.Name()); err != nil {
		t.Fatal(err)
	}
	w.add(1)
	closed(t, w, at(1))
	wantNumbers(t, "after it", readFolder(t, folder, time.Time{}, time.Time{}).numbers, 1, 1)
}

func TestCopy(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	for i := range 10 {
		w.add(i)
		w.Add(Jobs, []Column{{Of: Job, ID: "j", Quantity: Busy, Step: 1}}, at(i), period, []float64{1})
		w.AddEntry(Entry{At: at(i), Client: []string{"uid 7", "uid 8"}[i%2], Text: json.RawMessage(`{}`)})
		w.AddEntry(Entry{Kind: Event, At: at(i), Text: json.RawMessage(`{}`)})
		flush(t, w, at(i))
	}
	path := w.file.Name()
	w.add(10)
	var now bytes.Buffer
	if err := w.Copy(&now, time.Time{}, time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(&now, time.Time{}, time.Time{}); err != nil || len(got.rows) != 21 || len(got.entries) != 20 {
		t.Errorf("from the writer: got %d blocks and %d entries, %v, want 21 and 20", len(got.rows), len(got.entries), err)
	}
	text := contents(t, path)
	closed(t, w, at(10))
	for name, test := range map[string]struct {
		shows         func(Entry) bool
		rows, entries int
	}{
		"all":        {nil, 20, 20},
		"own":        {func(e Entry) bool { return e.Client == "uid 7" }, 10, 5},
		"own events": {func(e Entry) bool { return e.Kind == Event || e.Client == "uid 7" }, 10, 15},
	} {
		var to bytes.Buffer
		for range 2 { // one file after the other
			if err := Copy(&to, bytes.NewReader(text), time.Time{}, time.Time{}, test.shows); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readFile(&to, time.Time{}, time.Time{})
		if err != nil || got.damaged > 0 || len(got.rows) != 2*test.rows || len(got.entries) != 2*test.entries {
			t.Errorf("%s: got %d blocks and %d entries, %v, want %d and %d", name, len(got.rows), len(got.entries), err,
				2*test.rows, 2*test.entries)
		}
		for _, e := range got.entries {
			if test.shows != nil && e.Kind == Window && e.Client != "uid 7" {
				t.Errorf("%s: got a window of %s", name, e.Client)
			}
		}
	}
}

// Times of jobs are read apart from windows and events, by their users, and do not look into other blocks.
func TestTimesOfJobs(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	for i := range 4 {
		w.add(i)
		w.AddEntry(Entry{At: at(i), Text: json.RawMessage(`{}`)})
		w.AddEntry(Entry{Kind: Times, At: at(i), Client: []string{"uid 7", "uid 8"}[i%2], Text: json.RawMessage(`{"job":"a"}`)})
		flush(t, w, at(i))
	}
	path := w.file.Name()
	closed(t, w, at(4))
	times := func(in io.Reader, only bool) (n, others int) {
		r := NewReader(in)
		r.OnlyTimes = only
		for {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				return n, others
			} else if err != nil {
				t.Fatal(err)
			}
			for _, e := range item.Times {
				if e.Kind != Times || e.Client == "" || !e.At.Equal(at(n%4)) && !e.At.Equal(at(2*n)) {
					t.Errorf("got the entry %+v as number %d", e, n)
				}
				n++
			}
			if item.Times == nil {
				others++
			}
		}
	}
	text := contents(t, path)
	if n, others := times(bytes.NewReader(text), false); n != 4 || others != 8 {
		t.Errorf("got %d times and %d other blocks, want 4 and 8", n, others)
	}
	if n, others := times(bytes.NewReader(text), true); n != 4 || others != 0 {
		t.Errorf("only times: got %d and %d other blocks, want 4 and none", n, others)
	}
	var own bytes.Buffer
	shows := func(e Entry) bool { return e.Kind == Times && e.Client == "uid 7" }
	if err := Copy(&own, bytes.NewReader(text), time.Time{}, time.Time{}, shows); err != nil {
		t.Fatal(err)
	}
	if n, others := times(&own, false); n != 2 || others != 4 {
		t.Errorf("of one user: got %d times and %d other blocks, want 2, and 4 of curves", n, others)
	}
}

// What a later version writes is counted, and no plain user gets it.
func TestBlocksOfALaterVersion(t *testing.T) {
	var e encoder
	e.raw = []byte("something new")
	text, err := e.pack(header(), frame{content: timesBlock + 1, first: at(0).Unix(), last: at(0).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(bytes.NewReader(text))
	if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Later() != 1 || r.Damaged() != 0 {
		t.Errorf("got %v, %d blocks of a later version and %d damaged, want 1 and 0", err, r.Later(), r.Damaged())
	}
	var all, own bytes.Buffer
	err = Copy(&all, bytes.NewReader(text), time.Time{}, time.Time{}, nil)
	if err != nil || !bytes.Equal(all.Bytes(), text) {
		t.Errorf("got %q, %v, want the file as it is", all.Bytes(), err)
	}
	err = Copy(&own, bytes.NewReader(text), time.Time{}, time.Time{}, func(Entry) bool { return true })
	if err != nil || !bytes.Equal(own.Bytes(), header()) {
		t.Errorf("for a user: got %q, %v, want no block", own.Bytes(), err)
	}
}

// The times of a client take no more than their part of a day, also after a restart, and windows do not drive them out.
func TestTimesAreBounded(t *testing.T) {
	folder := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	noise := func() json.RawMessage { return fmt.Appendf(nil, `{"x":"%x%x"}`, random.Uint64(), random.Uint64()) }
	for range 3 {
		w := opened(t, folder, MinMaxSize)
		for range 20 {
			for range 200 {
				w.AddEntry(Entry{At: at(0), Text: noise(), Client: "a", Lane: trust.Lane("a")})
				w.AddEntry(Entry{Kind: Times, At: at(0), Text: noise(), Client: "a", Lane: trust.Lane("a")})
			}
			flush(t, w, at(0))
		}
		if w.Lost() == 0 {
			t.Error("got no loss, want one")
		}
		closed(t, w, at(0))
	}
	size := sizes(t, folder)
	for content, most := range map[content]int{timesBlock: MinMaxSize / timesShare, windowsBlock: MinMaxSize / textShare} {
		if n := size[content]; n > most || n < most/2 {
			t.Errorf("got %d bytes of blocks %d, want at most %d, and half of it", n, content, most)
		}
	}
}

// sizes returns how many bytes the blocks of a folder have, by their content.
func sizes(t *testing.T, folder string) map[content]int {
	t.Helper()
	files, err := Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	size := map[content]int{}
	for _, f := range files {
		r := NewReader(bytes.NewReader(contents(t, f.Path)))
		for b, _, err := r.block(); err == nil; b, _, err = r.block() {
			size[b.content] += frameSize + int(b.length)
		}
	}
	return size
}

// While a disk hangs, what is added waits, and the caller does not.
func TestAddWaitsForNoDisk(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	w.disk.Lock()
	w.add(0)
	added := w.AddEntry(Entry{Kind: Event, At: at(0), Text: json.RawMessage(`{"name":"a"}`)})
	_, written := w.Oldest()
	w.disk.Unlock()
	if !added || written || w.Lost() > 0 {
		t.Errorf("got an entry added: %v, written: %v, %d lost", added, written, w.Lost())
	}
	flush(t, w, at(1))
	if got := readFolder(t, folder, time.Time{}, time.Time{}); len(got.entries) != 1 || len(got.numbers) != 1 {
		t.Errorf("got %+v, want both", got)
	}
}
