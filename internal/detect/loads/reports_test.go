package loads

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

// use is an open of a file, which the kernel reports.
type use struct {
	from, to time.Duration
	path     string
	size     int64
	position int64 // at the close
	write    bool
	mapped   bool // looks see its mapping
}

// slow is a Past whose counters are read once a second.
type slow struct {
	detect.Past
	at *time.Duration
}

func (l slow) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	newest, _ := l.Reading(q)
	if before := newest - time.Second; at > before { // what is known is the level at the last two readings
		low, _ := l.Past.Level(q, before)
		high, _ := l.Past.Level(q, newest)
		return low + (high-low)*min(1, (at-before).Seconds()), true
	}
	return l.Past.Level(q, at)
}

func (l slow) Reading(detect.Quantity) (time.Duration, bool) { return l.at.Truncate(time.Second), true }

// playReported looks at a job once a second, and ten times while the detector is busy, with reports of opens.
func playReported(s detect.Past, until time.Duration, uses []use) (all []detect.Found) {
	d := New("job")
	last, at := time.Second, time.Second+300*ms
	if l, ok := s.(slow); ok {
		l.at = &at
		s = l
	}
	for at < until {
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: s, Listening: -1, Exact: true,
			Processes: []detect.Process{{PID: 7, Last: last, At: at, MapsLast: last, MapsAt: at}}}
		for _, u := range uses {
			e := detect.Event{PID: 7, Path: u.path, Size: u.size, Write: u.write}
			if e.At = u.from; u.from > last && u.from <= at {
				f.Events = append(f.Events, e)
			}
			if e.At, e.Close, e.Offset = u.to, true, u.position; u.to > last && u.to <= at {
				f.Events = append(f.Events, e)
			}
			if u.from <= at && u.to > at {
				one := detect.File{PID: 7, FD: 3, Path: u.path, Size: u.size, Write: u.write}
				if u.mapped {
					one.FD, one.Mapped = -1, u.size
				}
				f.Files = append(f.Files, one)
			}
		}
		slices.SortStableFunc(f.Events, func(a, b detect.Event) int { return cmp.Compare(a.At, b.At) })
		all = append(all, d.Look(f)...)
		last = at
		if d.Busy() {
			at += 100 * ms
		} else {
			at += time.Second
		}
	}
	return all
}

// reading is what a job reads by calls, from several moments on.
type reading []steady

func (r reading) Level(q detect.Quantity, at time.Duration) (sum float64, known bool) {
	for _, s := range r {
		moved, _ := s.Level(q, at)
		sum += moved
	}
	return sum, true
}

func (r reading) Reading(detect.Quantity) (time.Duration, bool) { return time.Hour, true }

// readOf is what reading a file takes from the counters.
func readOf(uses ...use) (r reading) {
	for _, u := range uses {
		r = append(r, steady{u.from, u.to, float64(u.size) / (u.to - u.from).Seconds(), detect.ReadChars})
	}
	return r
}

// A file is open for 50 ms, between two looks a second apart.
func TestShortLoads(t *testing.T) {
	first := use{from: 40*time.Second + 420*ms, path: "/m/llama/model.safetensors", size: 200 << 20}
	first.to = first.from + 50*ms
	second := first
	second.from, second.to = first.from+15*time.Second+300*ms, first.to+15*time.Second+380*ms
	parts := []use{first, first, first, first}
	for i := range parts {
		parts[i].path = []string{"/m/a/model-00001-of-00004.safetensors", "/m/a/model-00002-of-00004.safetensors",
			"/m/a/model-00003-of-00004.safetensors", "/m/a/model-00004-of-00004.safetensors"}[i]
		parts[i].from += time.Duration(i) * 60 * ms
		parts[i].to += time.Duration(i) * 60 * ms
	}
	headers := []use{first, first, first, first} // opened for its header three times before
	for i := range headers[:3] {
		headers[i].from -= time.Duration(60-10*i) * ms
		headers[i].to = headers[i].from + 2*ms
	}
	for name, c := range map[string]struct {
		uses []use
		past detect.Past
		want []use
	}{
		"once":              {uses: []use{first}, past: readOf(first), want: []use{first}},
		"read late":         {uses: []use{first}, past: slow{Past: readOf(first)}, want: []use{first}},
		"twice":             {uses: []use{first, second}, past: readOf(first, second), want: []use{first, second}},
		"parts":             {uses: parts, past: readOf(parts...), want: []use{{from: parts[0].from, to: parts[3].to}}},
		"after its headers": {uses: headers, past: readOf(first), want: []use{{from: headers[0].from, to: first.to}}},
	} {
		all := playReported(c.past, 80*time.Second, c.uses)
		if len(all) != len(c.want) {
			t.Errorf("%s: got %+v, want %d loads", name, all, len(c.want))
			continue
		}
		for i, got := range all {
			if got.Kind != window.ModelLoad || got.Start != c.want[i].from || got.End != c.want[i].to ||
				got.StartOpen != 0 || got.EndOpen != 0 {
				t.Errorf("%s: got %+v, want a load from %v to %v, and nothing open", name, got, c.want[i].from, c.want[i].to)
			}
		}
	}
}

// A file is opened for a moment again and again, in a job that reads other data all the time, or the first part of it.
func TestReportedOpensThatAreNoLoads(t *testing.T) {
	busy := steady{5 * time.Second, 60 * time.Second, 900 << 20, detect.ReadChars}
	for name, c := range map[string]struct {
		open, every time.Duration
		position    int64
		past        detect.Past
	}{
		"headers":              {2 * ms, 2500 * ms, 0, busy},
		"headers, often":       {ms, 100 * ms, 8192, busy},
		"a part, by positions": {40 * ms, 50 * ms, 8 << 20, steady{5 * time.Second, 60 * time.Second, 160 << 20, detect.ReadChars}},
		"a part, at offsets":   {40 * ms, 50 * ms, 0, steady{5 * time.Second, 60 * time.Second, 160 << 20, detect.ReadChars}},
	} {
		var uses []use
		for at := 5 * time.Second; at < 60*time.Second; at += c.every {
			uses = append(uses, use{from: at, to: at + c.open, path: "/m/model.safetensors", size: 300 << 20,
				position: c.position})
		}
		if all := playReported(c.past, 80*time.Second, uses); len(all) > 0 {
			t.Errorf("%s: got %d loads, the first %+v, want none", name, len(all), all[0])
		}
	}
}

// A checkpoint is written between two looks.
func TestShortCheckpoints(t *testing.T) {
	var uses []use
	var past reading
	for i, path := range []string{"/out/step-100/model.pt", "/out/step-200/model.pt"} {
		from := time.Duration(20+10*i)*time.Second + 420*ms
		uses = append(uses, use{from: from, to: from + 80*ms, path: path, size: 30 << 20, write: true})
		past = append(past, steady{from, from + 80*ms, 375 << 20, detect.WriteBytes})
	}
	all := playReported(past, 60*time.Second, uses)
	if len(all) != 2 {
		t.Fatalf("got %+v, want two checkpoints", all)
	}
	for i, got := range all {
		if got.Kind != window.Checkpoint || got.Start != uses[i].from || got.End != uses[i].to {
			t.Errorf("got %+v, want a checkpoint from %v to %v", got, uses[i].from, uses[i].to)
		}
	}
}

// A mapping that looks see, of a file whose descriptor was closed: it is open until the map ends.
func TestReportedMapping(t *testing.T) {
	u := use{from: 40*time.Second + 120*ms, to: 52 * time.Second, path: "/m/llama/model.safetensors", size: 200 << 20,
		mapped: true}
	past := steady{u.from, u.from + time.Second, 200 << 20, detect.ReadBytes}
	all := playReported(past, 70*time.Second, []use{u})
	if len(all) != 1 || all[0].Start != u.from || (all[0].End-past.to).Abs() > 200*ms {
		t.Errorf("got %+v, want one load from %v to %v", all, u.from, past.to)
	}
}
