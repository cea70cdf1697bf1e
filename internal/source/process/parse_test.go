package process

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/test/fixture"
)

const tail = " 0 0 0 0 0 0 10 11 0 0 14 15 16 17 0 0 20 0 22 23\n"

func TestParseStat(t *testing.T) {
	good := Stat{
		State:   'S',
		Parent:  4,
		faults:  10,
		cfaults: 11,
		User:    14,
		System:  15,
		cuser:   16,
		csystem: 17,
		Start:   22,
	}
	for _, name := range []string{"python3", "a b", ")", "(", ") R 1 (", "", "\n)"} {
		text := "7 (" + name + ") S 4" + strings.Replace(tail, " 0", "", 1)
		if got, ok := ParseStat([]byte(text)); !ok || got != good {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, ok, good)
		}
	}
	for _, text := range []string{
		"", "7", "7 (x", "7 (x)", "7 (x) S", "7 (x) SS 4" + tail, "7 (x) S -4" + tail, "7 (x) S 4 5 6\n",
	} {
		if got, ok := ParseStat([]byte(text)); ok {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
	dead := strings.NewReplacer(" S ", " Z ", " 20 ", " 3 ").Replace("7 (x) S 4" + strings.Replace(tail, " 0", "", 1))
	if got, ok := ParseStat([]byte(dead)); !ok || got.Ended {
		t.Error("first of three threads ended: got an ended process, want a running one")
	}
}

func TestParseOtherFiles(t *testing.T) {
	if _, _, _, ok := ParseIO([]byte("rchar: 1\nread_bytes: 2\n")); ok {
		t.Error("without write_bytes: got a result, want an error")
	}
	if _, _, _, ok := ParseIO([]byte("rchar: 1\nread_bytes: -2\nwrite_bytes: 0\n")); ok {
		t.Error("negative read_bytes: got a result, want an error")
	}
	got, ok := parseUsage([]byte("user_usec 1\nusage_usec 7\nsystem_usec 6\n"))
	if want := (usage{7 * time.Microsecond, 6 * time.Microsecond}); !ok || got != want {
		t.Errorf("cpu.stat: got %v, %v; want %v", got, ok, want)
	}
	if _, ok := parseUsage([]byte("usage_usec 18446744073709551615\n")); ok {
		t.Error("584,542 years: got a result, want an error")
	}
	for text, want := range map[string]uint64{
		"350735.47 234388.90\n": 35073547, "0.05 1": 5, "1": 0, "1.5x": 0, "1.100 2": 0, "": 0,
	} {
		if got, ok := parseUptime([]byte(text)); got != want || ok != (want != 0) {
			t.Errorf("%q: got %d, %v; want %d", text, got, ok, want)
		}
	}
}

// What both understand, procfs understands in the same way.
func FuzzStat(f *testing.F) {
	f.Add(
		"python3",
		"S 1 100 100 34816 100 4194304 5000 700 1 0 250 50 30 20 20 0 9 0 400000 1000000 2000 0 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0",
	)
	f.Add(
		") Z 1 (",
		"R 2 1 1 -1 -1 4194304 1 2 3 4 5 6 7 8 20 -5 1 0 22 23 24 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0",
	)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, name, rest string) {
		text := "7 (" + name + ") " + rest
		got, ok := ParseStat([]byte(text))
		if !ok || got.State >= 0x80 || strings.ContainsAny(text, "\n\t\r\v\f") {
			return
		}
		for _, word := range strings.Split(text[strings.LastIndexByte(text, ')')+1:], " ")[2:] {
			digits := strings.TrimPrefix(word, "-")
			if n, err := strconv.ParseUint(digits, 10, 64); err != nil || strconv.FormatUint(n, 10) != digits {
				return // procfs takes "1-1" for two numbers and 010 for eight; the kernel prints no such thing
			}
		}
		root := t.TempDir()
		fixture.Write(t, root, "proc/7/stat", []byte(text))
		proc, err := procfs.NewFS(root + "/proc")
		if err != nil {
			t.Fatal(err)
		}
		process, err := proc.Proc(7)
		if err != nil {
			t.Fatal(err)
		}
		oracle, err := process.Stat()
		if err != nil {
			return // it reads more fields, and as int
		}
		ended := oracle.State == "X" || oracle.State == "Z" && oracle.NumThreads <= 1
		ours := fmt.Sprint(string([]byte{got.State}), got.Parent, got.faults, got.cfaults, got.User, got.System, got.cuser,
			got.csystem, got.Ended, got.Start)
		theirs := fmt.Sprint(oracle.State, min(oracle.PPID, math.MaxInt32), oracle.MinFlt, oracle.CMinFlt,
			oracle.UTime, oracle.STime, oracle.CUTime, oracle.CSTime, ended, oracle.Starttime)
		if ours != theirs {
			t.Errorf("%q: %s, procfs has %s", text, ours, theirs)
		}
	})
}

func FuzzIO(f *testing.F) {
	f.Add(
		[]byte(
			"rchar: 9000\nwchar: 800\nsyscr: 10\nsyscw: 8\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 0\n",
		),
	)
	f.Add([]byte("rchar: 18446744073709551616\nread_bytes:1\nwrite_bytes: "))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, chars, write, ok := ParseIO(text)
		if !ok {
			return
		}
		for name, n := range map[string]uint64{"read_bytes": read, "rchar": chars, "write_bytes": write} {
			_, digits, found := strings.Cut("\n"+string(text), "\n"+name+": ")
			digits, _, _ = strings.Cut(digits, "\n")
			if !found || strings.TrimLeft(digits, "0") != strings.TrimLeft(fmt.Sprint(n), "0") {
				t.Errorf("%s: %d from %q", name, n, text)
			}
		}
	})
}

func FuzzUsageAndUptime(f *testing.F) {
	f.Add([]byte("usage_usec 50702989\nuser_usec 35047823\n"))
	f.Add([]byte("350735.47 234388.90\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if usage, ok := parseUsage(text); ok && (usage.all < 0 || usage.system < 0) {
			t.Errorf("usage %v", usage)
		}
		if ticks, ok := parseUptime(text); !ok && ticks != 0 {
			t.Errorf("uptime %d", ticks)
		}
	})
}

func TestStatOfText(t *testing.T) {
	const fields = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
	for text, want := range map[string]struct {
		start uint64
		ok    bool
	}{
		"4 (x) S" + fields + " 1 0 77 0\n":                 {77, true},
		"4 (a) b (c) 9 9) S" + fields + " 1 0 77 0\n":      {77, true},
		"4 (x) Z" + fields + " 1 0 77 0\n":                 {77, false}, // waits to be waited for
		"4 (x) Z" + fields + " 2 0 77 0\n":                 {77, true},  // another thread goes on
		"4 (x) X" + fields + " 2 0 77 0\n":                 {77, false},
		"4 (x) S" + fields + " 1 0 77":                     {77, true},
		"4 (x) S" + fields + " 1 0":                        {},
		"4 (x) S" + fields + " 1 0 -7 0\n":                 {},
		"4 (x) S" + fields + " 1 0 18446744073709551616 0": {},
		"4 (x) S" + fields + " 1 0 18446744073709551615 0": {1<<64 - 1, true},
		"":      {},
		"4 (x":  {},
		"4 (x)": {},
	} {
		of, ok := ParseStat([]byte(text))
		if ok = ok && !of.Ended; ok != want.ok || ok && of.Start != want.start {
			t.Errorf("%q: got %+v, %v; want start %d, %v", text, of, ok, want.start, want.ok)
		}
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("75502 62653 2\n"))
	f.Add([]byte("18446744073709551615 0 0\n"))
	f.Add([]byte(" \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ran, ready, ok := ParseSchedstat(text)
		if !ok {
			return
		}
		if again, same, ok := ParseSchedstat(fmt.Appendf(nil, "%d %d 0", ran, ready)); !ok || again != ran || same != ready {
			t.Errorf("%q: %d and %d, then %d and %d", text, ran, ready, again, same)
		}
	})
}
