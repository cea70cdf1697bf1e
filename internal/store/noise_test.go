package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/trust"
)

// Whatever clients add, the curves, the events of the machine and another client's windows are kept.
func TestFlood(t *testing.T) {
	for name, c := range map[string]struct {
		size           int64
		users          int
		reports, bytes int // of all of them in a minute
	}{
		"one user":                {DefaultMaxSize, 1, 450, 5_000},
		"small files":             {16_000_000, 1, 400, 2_500},
		"large reports":           {DefaultMaxSize, 1, 150, 60_000},
		"many users":              {DefaultMaxSize, 60, 150, 60_000},
		"small files, many users": {16_000_000, 60, 150, 60_000},
	} {
		folder := t.TempDir()
		w := opened(t, folder, c.size)
		random := rand.NewChaCha8([32]byte{})
		report := func() json.RawMessage {
			raw := make([]byte, c.bytes/2-10)
			_, _ = random.Read(raw) // never fails
			return fmt.Appendf(nil, `{"x":"%x"}`, raw)
		}
		flood := make([]json.RawMessage, 50)
		for i := range flood {
			flood[i] = report()
		}
		const minutes = 4
		for minute := range minutes {
			when := at(6 * minute)
			victim := Entry{At: when, Client: "victim", Text: json.RawMessage(`{"w":1}`), Lane: trust.Lane("victim")}
			w.AddEntry(victim)
			w.AddEntry(Entry{Kind: Event, At: when, Text: json.RawMessage(`{"name":"lost"}`)})
			for i := range c.reports {
				user := fmt.Sprint("uid ", i%c.users)
				w.AddEntry(Entry{At: when, Client: user, Text: flood[random.Uint64()%50], Lane: trust.Lane(user)})
			}
			w.AddEntry(victim)
			w.add(minute)
			flush(t, w, when)
		}
		lost := w.Lost()
		closed(t, w, at(6*minutes))
		got := readFolder(t, folder, time.Time{}, time.Time{})
		wantNumbers(t, name, got.numbers, 0, minutes-1)
		of := map[string]int{}
		for _, e := range got.entries {
			of[e.Kind.String()+" of "+e.Client]++
		}
		if of["window of victim"] != 2*minutes || of["event of "] != minutes || got.damaged > 0 {
			t.Errorf("%s: got %d windows of another client and %d events of the machine, want %d and %d", name,
				of["window of victim"], of["event of "], 2*minutes, minutes)
		}
		if n := len(got.entries); n+int(lost) != minutes*(c.reports+3) || n < 4*minutes {
			t.Errorf("%s: got %d entries and %d lost, want %d in all, and some of the flood", name, n, lost,
				minutes*(c.reports+3))
		}
	}
}

// Text that compresses as badly as any, of the largest size, makes no block that is too large.
func TestLargestEntries(t *testing.T) {
	folder := t.TempDir()
	w := opened(t, folder, DefaultMaxSize)
	text := json.RawMessage(`"` + strings.Repeat("<", maxText-2) + `"`) // each becomes six bytes
	for i := range 20 {
		w.AddEntry(Entry{At: at(i), Text: text, Lane: "of a"})
	}
	w.AddEntry(Entry{At: at(20), Text: json.RawMessage(`{"cut`), Lane: "of a"})
	closed(t, w, at(21))
	if got := readFolder(t, folder, time.Time{}, time.Time{}); len(got.entries) != 20 || w.Lost() != 1 {
		t.Errorf("got %d entries and %d lost, want 20, and that which is no JSON lost", len(got.entries), w.Lost())
	}
}

// No clock that is wrong removes a file, in one program or at several starts, and later days go on removing old ones.
func TestWrongClock(t *testing.T) {
	const day = int(24 * time.Hour / period)
	for name, steps := range map[string][]int{ // days from the last real one
		"ahead and back": {9, 0}, "behind and back": {-9, 0}, "little ahead": {3, 0}, "to and fro": {9, 0, -9, 0, 30, 0, 400, 0},
		"at the epoch": {-(20_000), 0}, "ahead twice": {9, 20, 0}, "ahead for two days": {1000, 0},
	} {
		for _, again := range []bool{false, true} { // the program starts again at each step
			folder := t.TempDir()
			w := opened(t, folder, DefaultMaxSize)
			for i := range 8 {
				w.add(i * day)
				flush(t, w, at(i*day))
			}
			last := 7 * day
			for n, step := range steps {
				when := at(last).Add(time.Duration(step)*24*time.Hour + time.Duration(n)*time.Minute)
				if again {
					closed(t, w, at(last))
					w = opened(t, folder, DefaultMaxSize)
				}
				w.Add(Devices, columnsOf("vda", 1), when, period, []float64{0})
				flush(t, w, when)
			}
			files, err := Files(folder)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 {
				want := dayOf(at(i * day))
				if !slices.ContainsFunc(files, func(f File) bool { return f.Day.Equal(want) }) {
					t.Errorf("%s, starts %v: the file of %v is gone", name, again, want)
				}
			}
			for i := 8; i < 30; i++ {
				w.add(i * day)
				flush(t, w, at(i*day))
			}
			closed(t, w, at(30*day))
			if files, err = Files(folder); err != nil || len(files) > 15 {
				t.Errorf("%s, starts %v: got %d files three weeks later, %v; want about a week", name, again, len(files), err)
			}
		}
	}
}

// Whatever root's agent creates belongs to the owner of the folder in which it is.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose files others cannot use")
	}
	const service = 1234
	state := t.TempDir()
	if err := os.Chown(state, service, service); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(state, "a", "history")
	w := opened(t, folder, DefaultMaxSize)
	w.add(0)
	flush(t, w, at(0))
	closed(t, w, at(1))
	for _, path := range []string{filepath.Dir(folder), folder, filepath.Join(folder, ".lock"), w.file.Name()} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if of, ok := info.Sys().(*syscall.Stat_t); !ok || of.Uid != service || of.Gid != service {
			t.Errorf("%s: got the owner %+v, want %d", path, info.Sys(), service)
		}
	}
}
