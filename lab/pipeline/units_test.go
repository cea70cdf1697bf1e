//go:build linux

package pipeline

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSplit(t *testing.T) {
	ms := time.Millisecond
	line := func(events ...event) *timeline { return &timeline{events: events} }
	for name, c := range map[string]struct {
		lines        []*timeline
		made         time.Duration
		read, decode time.Duration
	}{
		"nothing known":               {[]*timeline{line()}, 20 * ms, 0, 0},
		"one worker":                  {[]*timeline{line(event{2 * ms, 1, reading}, event{12 * ms, 1, decoding}, event{18 * ms, -1, idle})}, 20 * ms, 2 * ms, 6 * ms},
		"made before its waiter woke": {[]*timeline{line(event{2 * ms, 1, reading}, event{12 * ms, 1, decoding})}, 15 * ms, 2 * ms, 3 * ms},
		"two at the batch":            {[]*timeline{line(event{2 * ms, 1, reading}), line(event{3 * ms, 1, decoding})}, 20 * ms, 5 * ms, 5 * ms},
		"one at the batch":            {[]*timeline{line(event{2 * ms, 1, reading}), line(event{3 * ms, 2, decoding})}, 20 * ms, 10 * ms, 0},
		"none at the batch":           {[]*timeline{line(event{2 * ms, 0, reading}), line(event{3 * ms, -1, idle})}, 20 * ms, 5 * ms, 0},
		"then at the batch":           {[]*timeline{line(event{2 * ms, 0, reading}), line(event{16 * ms, 1, decoding})}, 20 * ms, 3 * ms, 4 * ms},
	} {
		if read, decode := split(c.lines, 1, 10*ms, 20*ms, c.made); read != c.read || decode != c.decode {
			t.Errorf("%s: %v reading and %v decoding, want %v and %v", name, read, decode, c.read, c.decode)
		}
	}
}

// For any logs, split charges no more than the time that passed, and consecutive steps lose none of it.
func TestSplitProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var one, two []*timeline
		for range 1 + r.IntN(4) {
			at := time.Duration(0)
			var events []event
			for range r.IntN(30) {
				at += time.Duration(r.IntN(50))
				events = append(events, event{at, 1, phase(r.IntN(int(phases)))})
			}
			one = append(one, &timeline{events: slices.Clone(events)})
			two = append(two, &timeline{events: events})
		}
		middle, end := time.Duration(r.IntN(700)), time.Duration(700)
		read, decode := split(one, 1, 0, end, end)
		if read < 0 || decode < 0 || read+decode > end {
			t.Fatalf("%v and %v of %v", read, decode, end)
		}
		firstRead, firstDecode := split(two, 1, 0, middle, end)
		nextRead, nextDecode := split(two, 1, middle, end, end)
		if d := read + decode - firstRead - firstDecode - nextRead - nextDecode; d < -10 || d > 10 { // rounding errors
			t.Fatalf(
				"%v and %v in one piece, %v, %v, %v and %v in two",
				read,
				decode,
				firstRead,
				firstDecode,
				nextRead,
				nextDecode,
			)
		}
	}
}

func TestOrderTakesNoRecordTwice(t *testing.T) {
	plan := Plan{Files: shards(t), Record: 10_000, Batch: 7, Steps: 85, Seed: 3}
	o, err := newOrder(&plan)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[place]bool{}
	files := map[int]int{}
	for i := range plan.Steps * plan.Batch {
		at := o.at(i)
		if seen[at] || at.offset < 0 || at.offset+10_000 > 2<<20+777 || at.offset%10_000 != 0 {
			t.Fatalf("record %d: got %+v, want a new place inside the files", i, at)
		}
		seen[at] = true
		files[at.file]++
	}
	if len(files) != 3 {
		t.Errorf("records of the files: %v", files)
	}
	plan.Steps = 90 // 627 fit
	if _, err := newOrder(&plan); err == nil {
		t.Error("no error for more records than there are")
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	good := Plan{Record: 4096, Batch: 1, Steps: 1}
	for want, change := range map[string]func(*Plan){
		"unknown reading": func(p *Plan) { p.Reading = "x" },
		"unknown style":   func(p *Plan) { p.Style = "x" },
		"records of":      func(p *Plan) { p.Record = 7 },
		"workers":         func(p *Plan) { p.Workers = 1000 },
		"negative times":  func(p *Plan) { p.Decode = -1 },
		"0 steps":         func(p *Plan) { p.Steps = 0 },
		"a folder":        func(p *Plan) { p.CheckpointEvery = 1 },
	} {
		plan := good
		change(&plan)
		plan.fill()
		if err := plan.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is wanted: %v", want, err)
		}
	}
	good.fill()
	if err := good.check(); err != nil {
		t.Error(err)
	}
}

func FuzzBatchMessage(f *testing.F) {
	m := batchMessage{batch: 3, sum: 1 << 31, events: []event{{5, -1, idle}, {6, 70_000, decoding}}}
	m.totals.records, m.totals.accounts[reading].ready = 8, time.Second
	f.Add(appendBatch(nil, &m))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got batchMessage
		if parseBatch(data, &got) != nil {
			return
		}
		var again batchMessage
		if err := parseBatch(appendBatch(nil, &got), &again); err != nil {
			t.Fatal(err)
		}
		if again.batch != got.batch || again.totals != got.totals || !slices.Equal(again.events, got.events) {
			t.Errorf("%+v became %+v", got, again)
		}
	})
}

func FuzzReadMessage(f *testing.F) {
	var b bytes.Buffer
	_, _ = writeMessage(&b, nil, kindError, func(to []byte) []byte { return append(to, "why"...) })
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, payload, _, err := readMessage(bytes.NewReader(data), nil)
		if err == nil && (kind != data[4] || !bytes.Equal(payload, data[5:5+len(payload)])) {
			t.Errorf("readMessage: got kind %c, payload %q; want those of the data", kind, payload)
		}
	})
}

func TestMoreWorkTakesLonger(t *testing.T) {
	rate, err := Calibrate()
	if err != nil || rate <= 0 {
		t.Fatalf("Calibrate: got %v, %v; want a positive rate", rate, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	record := make([]byte, 200_001)
	before := threadCPU()
	record[0] = byte(mix(record, roundsOf(100*time.Millisecond, rate)))
	took := threadCPU() - before
	t.Logf("100 ms of decoding took %v of CPU", took)
	if took < 10*time.Millisecond || took > time.Second {
		t.Errorf("100 ms of decoding took %v of CPU", took)
	}
}

func TestClocksAgree(t *testing.T) {
	c := newClock()
	before := clockOf(1)
	at := c.now()
	if after := clockOf(1); at < before-precision || at > after+precision {
		t.Errorf("%v is not between %v and %v", at, before, after)
	}
}

func TestKernelRingThatCannotBe(t *testing.T) {
	if _, err := newKernelRing(0); err == nil || !strings.Contains(err.Error(), "io_uring") {
		t.Errorf("newKernelRing(0): got error %v, want one that names io_uring", err)
	}
}

// BenchmarkEnter measures the cost of a phase change.
func BenchmarkEnter(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m, err := newMeter(newClock())
	if err != nil {
		b.Fatal(err)
	}
	defer m.close()
	m.silent = true
	for b.Loop() {
		m.enter(reading, 1)
	}
}
