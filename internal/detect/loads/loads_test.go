package loads

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

const ms = time.Millisecond

// steady is a job that reads or writes at a constant rate between two moments.
type steady struct {
	from, to time.Duration
	rate     float64 // bytes per second
	quantity detect.Quantity
}

func (s steady) moved(at time.Duration) float64 {
	return s.rate * (min(max(at, s.from), s.to) - s.from).Seconds()
}

func (s steady) Level(q detect.Quantity, at time.Duration) (float64, bool) {
	if q != s.quantity {
		return 0, true
	}
	return s.moved(at), true
}

func (s steady) Reading(detect.Quantity) (time.Duration, bool) { return time.Hour, true }

// play looks at a job once a second, and ten times while the detector is busy. It returns what was found.
func play(
	t *testing.T, s steady, until time.Duration, files func(at time.Duration) []detect.File,
) (all []detect.Found) {
	t.Helper()
	d := New("job")
	last := time.Second
	for at := time.Second + 300*ms; at < until; {
		f := &detect.Facts{Job: "job", At: at, Last: last, Files: files(at), Past: s, Listening: -1,
			Processes: []detect.Process{{PID: 7}}}
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

func TestFileReadOnce(t *testing.T) {
	for _, from := range []time.Duration{5 * time.Second, 5*time.Second + 350*ms, 5*time.Second + 900*ms} {
		s := steady{from, from + 4*time.Second, 100 << 20, detect.ReadChars}
		all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
			if at < s.from || at > s.to {
				return nil
			}
			return []detect.File{{PID: 7, FD: 3, Path: "/models/llama/model.safetensors", Size: 400 << 20,
				Offset: int64(s.moved(at))}}
		})
		if len(all) != 1 {
			t.Fatalf("from %v: got %+v, want one load", from, all)
		}
		got := all[0]
		if got.Kind != window.ModelLoad || got.Model != "llama" || got.Path != "/models/llama/model.safetensors" {
			t.Errorf("from %v: got %+v, want a load of llama", from, got)
		}
		if (got.Start-s.from).Abs() > 300*ms || (got.End-s.to).Abs() > 300*ms {
			t.Errorf("from %v: got %v to %v, want %v to %v", from, got.Start, got.End, s.from, s.to)
		}
	}
}

func TestNoLoad(t *testing.T) {
	read := steady{5 * time.Second, 9 * time.Second, 100 << 20, detect.ReadChars}
	for name, file := range map[string]detect.File{
		"a header":    {Path: "/m/a.gguf", Size: 40 << 30, Offset: 100_000},
		"a data set":  {Path: "/data/train.bin", Size: 400 << 20},
		"a log":       {Path: "/var/log/server.log", Size: 400 << 20},
		"a tokenizer": {Path: "/m/tokenizer.json", Size: 400 << 20},
	} {
		all := play(t, read, 40*time.Second, func(at time.Duration) []detect.File {
			if at < read.from || at > read.to {
				return nil
			}
			one := file
			one.PID, one.FD = 7, 3
			if one.Offset == 0 {
				one.Offset = int64(read.moved(at))
			}
			return []detect.File{one}
		})
		if len(all) != 0 {
			t.Errorf("%s: got %+v, want nothing", name, all)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	s := steady{5 * time.Second, 9 * time.Second, 50 << 20, detect.WriteBytes}
	all := play(t, s, 30*time.Second, func(at time.Duration) []detect.File {
		if at < s.from || at > s.to {
			return nil
		}
		return []detect.File{{PID: 7, FD: 3, Path: "/out/step-100/model.pt", Size: int64(s.moved(at)), Write: true}}
	})
	if len(all) != 1 || all[0].Kind != window.Checkpoint {
		t.Fatalf("got %+v, want one checkpoint", all)
	}
	if got := all[0]; (got.Start-s.from).Abs() > 500*ms || (got.End-s.to).Abs() > 300*ms {
		t.Errorf("got %v to %v, want %v to %v", got.Start, got.End, s.from, s.to)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"/m/llama/model-00001-of-00004.safetensors":   "llama",
		"/m/llama-7b.gguf":                            "llama-7b",
		"/triton/resnet/1/model.plan":                 "resnet",
		"/c/models--org--name/blobs/0123456789abcdef": "org/name",
		"/m/llama/consolidated.00.pth":                "llama",
	} {
		if got := modelOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
