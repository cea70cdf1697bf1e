package emit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// between is a window of a made-up machine's day.
func between(kind window.Kind, start, end time.Duration) window.Window {
	return window.Window{Kind: kind, Source: window.Announced, Start: at(start), End: at(end)}
}

func reports() map[string]*window.Report {
	epoch := between(window.Epoch, time.Hour, time.Hour+10*time.Second)
	epoch.Run, epoch.Epoch, epoch.HasEpoch = "train.py", 0, true
	slow := &window.Report{
		Window: epoch,
		Facts: window.Facts{GPUIDs: []string{"GPU-1", "GPU-2"}, Disks: []window.DiskUse{
			{Name: "nvme0n1", ReadBytes: 3 * mib, ReadOperations: 30, ReadTime: 3 * time.Second, QueueDepth: 0.5,
				BusyRatio: 0.4},
			{Name: "sda", ReadBytes: mib, ReadOperations: 10, ReadTime: time.Second, WriteBytes: 4096,
				WriteOperations: 4,
				WriteTime:       2 * time.Second, QueueDepth: 1, BusyRatio: 0.9},
		}, Pressure: &window.Pressure{Some: 7 * time.Second, Full: 6 * time.Second}},
		Ledger: window.Ledger{Split: true, Busy: 6 * time.Second, Storage: 12 * time.Second, CPU: time.Second,
			Other: time.Second, Evidence: window.FromSchedule, OtherReasons: []window.OtherReason{
				{Kind: window.OtherNetwork, Name: "receiving from 10.0.0.7:443 over TCP", Time: 800 * ms},
				{Kind: window.OtherTimer, Name: "timer\xff", Time: 200 * ms}, {Kind: window.OtherLock, Name: "futex",
					Time: ms},
			}},
		Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 2.5, Slow: true,
			SlowReason: window.SlowStorage},
		Further: window.Further{Findings: []window.Finding{window.FailingDisk{Text: "sda is failing.",
			Remedy: "Replace it."},
			window.FailingDisk{Text: "sdb is failing."}}, Stalls: []window.Stall{
			{Start: time.Hour + time.Second, End: time.Hour + 4*time.Second},
			{Start: time.Hour + 6*time.Second, End: time.Hour + 9*time.Second},
		}},
	}
	load := between(window.ModelLoad, time.Hour, time.Hour+time.Minute)
	load.Model, load.Path, load.Unfinished = "llama", "/models/llama.safetensors", true
	load.Epoch, load.HasEpoch, load.Name = 3, true, "no load has such" // nor do its attributes
	mounts := &window.Report{
		Window: load,
		Ledger: window.Ledger{Split: true, Storage: 50 * time.Second, CPU: 2 * time.Second, Other: 8 * time.Second,
			Evidence: window.FromPressure},
		Judgement: window.Judgement{Verdict: window.StorageBound, Slow: true, SlowReason: window.SlowStorage,
			Uncertainty: 0.05, Interrupted: true},
		Facts: window.Facts{Mounts: []sample.Mount{{Point: "/data", Type: "nfs4"}, {Point: "/more",
			Type: "fuse.sshfs"}}},
		Further: window.Further{Stalls: []window.Stall{{Start: time.Hour, End: time.Hour + 50*time.Second}}},
	}
	idle := between(window.Checkpoint, time.Hour, time.Hour+time.Second)
	idle.Name = "step 100"
	return map[string]*window.Report{
		"span_gpu":    slow,
		"span_mounts": mounts,
		"span_unknown": {Window: idle,
			Judgement: window.Judgement{Verdict: window.Unknown,
				Missing: []window.Missing{{Reason: window.NoReadings}}, Uncertainty: 0.01},
			Facts: window.Facts{Disks: []window.DiskUse{{Name: "vda", WriteOperations: 2}}}},
	}
}

// TestSpans writes a slow epoch on two GPUs and two disks; a load without a GPU from mounts without a disk; and a
// checkpoint with few readings.
func TestSpans(t *testing.T) {
	for name, r := range reports() {
		var b strings.Builder
		spanText(&b, emit.WindowSpan(r, config.Spans{}), "")
		checkText(t, name, b.String())
	}
}

func TestSpanNames(t *testing.T) {
	for want, w := range map[string]window.Window{
		"load": {Kind: window.ModelLoad, Name: "x"}, "load llama": {Kind: window.ModelLoad, Model: "llama"},
		"epoch": {Kind: window.Epoch, Epoch: 3, HasEpoch: true}, "epoch train.py": {Kind: window.Epoch,
			Run: "train.py"},
		"checkpoint": {Kind: window.Checkpoint, Run: "train.py"}, "steps": {Kind: window.Steps, Run: "train.py"},
		"custom warm-up": {Kind: window.Custom, Name: "warm-up"},
	} {
		if got := emit.SpanName(&w, config.Spans{}); got != want {
			t.Errorf("%+v is called %q, want %q", w, got, want)
		}
	}
	indexed := config.Spans{Names: config.NamesIndexed}
	for want, w := range map[string]window.Window{
		"epoch 3": {Kind: window.Epoch, Epoch: 3, HasEpoch: true}, "epoch train.py": {Kind: window.Epoch,
			Run: "train.py"},
		"epoch 0 train.py": {Kind: window.Epoch, Run: "train.py", HasEpoch: true},
		"load llama":       {Kind: window.ModelLoad, Model: "llama", HasEpoch: true},
	} {
		if got := emit.SpanName(&w, indexed); got != want {
			t.Errorf("%+v is called %q with its number, want %q", w, got, want)
		}
	}
}

// The event of a slow window is where it became slow.
func TestTimeOfSlow(t *testing.T) {
	r := reports()["span_gpu"]
	for want, set := range map[time.Duration]func(){
		0:               func() {},
		time.Second:     func() { r.StallBegan = time.Hour + time.Second },
		7 * time.Second: func() { r.ApplyLimits(window.Limits{Set: 7 * time.Second}) },
	} {
		r = reports()["span_gpu"]
		set()
		if got := emit.WindowSpan(r, config.Spans{}).Events[0].Time.Sub(r.Start.Wall); got != want {
			t.Errorf("slow by %s: the event is %v after the beginning, want %v", r.SlowReason, got, want)
		}
	}
}

// The event of a slow window says whose window it is, and does not export it.
func TestClientOfSlow(t *testing.T) {
	r := reports()["span_gpu"]
	r.Client = "uid 7"
	e := emit.WindowSpan(r, config.Spans{}).Events[0]
	if line := string(e.JSON()); e.Client != "uid 7" || strings.Contains(line, "uid 7") {
		t.Errorf("got the client %q and the line %s, want uid 7 and no client in the line", e.Client, line)
	}
}

// Only a slow window fails, and only where that is wanted.
func TestSlowStatus(t *testing.T) {
	r := reports()["span_gpu"]
	for _, slow := range []bool{false, true} {
		r.Slow = slow
		for status, wanted := range map[string]bool{"": false, config.StatusUnset: false, config.StatusError: true} {
			want := ""
			if slow && wanted {
				want = emit.UTF8(explain.Finding(r))
			}
			if got := emit.WindowSpan(r, config.Spans{SlowStatus: status}).Failure; got != want {
				t.Errorf("slow %v, slow_status %q: got the failure %q, want %q", slow, status, got, want)
			}
		}
	}
}

// Spans link to the page only where one is set.
func TestSpanLinksToThePage(t *testing.T) {
	r := reports()["span_gpu"]
	r.ID = "w1"
	for page, want := range map[string]bool{"": false, "http://gpu1:4319": true} {
		link, got := "", false
		for _, kv := range emit.WindowSpan(r, config.Spans{Page: page}).Attributes {
			if kv.Key == semconv.URLKey {
				link, got = kv.Value.AsString(), true
			}
		}
		if got != want || got && !strings.HasSuffix(link, "&window=w1") {
			t.Errorf("with the page %q: got %q, want a link: %v", page, link, want)
		}
	}
}

// A wall clock that is set in the middle of a window moves neither its length nor its stalls.
func TestSpanOfSteppedClock(t *testing.T) {
	r := reports()["span_gpu"]
	r.End.Wall = r.End.Wall.Add(-time.Hour)
	s := emit.WindowSpan(r, config.Spans{})
	if s.End.Sub(s.Start) != 10*time.Second || s.Children[0].Start.Sub(s.Start) != time.Second {
		t.Errorf("from %v to %v, first stall at %v", s.Start, s.End, s.Children[0].Start)
	}
}

// The body of a slow window has its duration once, and names its job.
func TestBodyOfASlowWindow(t *testing.T) {
	w := window.Window{Kind: window.ModelLoad, Model: "st3", End: sample.Stamp{Mono: 874 * time.Millisecond}}
	r := &window.Report{Window: w, Facts: window.Facts{GPUIDs: []string{"GPU-1"}},
		Judgement: window.Judgement{Slow: true, SlowReason: window.SlowStorage, Verdict: window.StorageBound},
		Ledger:    window.Ledger{Split: true, Busy: 437 * time.Millisecond, Storage: 437 * time.Millisecond}}
	for _, want := range []string{
		"load st3, 874 ms: The GPU was busy 50 % and waited for storage 50 % of the time.",
		"load st3: It took 874 ms, over the configured limit of 100 ms: the GPU was busy 50 % and waited for storage 50 % of the time.",
	} {
		events := emit.WindowSpan(r, config.Spans{}).Events
		if len(events) != 1 || events[0].Body != want {
			t.Errorf("%+v, want %s", events, want)
		}
		r.ApplyLimits(window.Limits{Set: 100 * time.Millisecond})
	}
	r.Who = sample.JobName{ID: "process 42", PID: 42, Name: "serve.py"}
	event := emit.WindowSpan(r, config.Spans{}).Events[0]
	if want := "load st3 of serve.py 42: It took"; !strings.HasPrefix(event.Body, want) ||
		!slices.Contains(event.Attributes, semconv.JobNameKey.String("serve.py")) {
		t.Errorf("got %+v, want %s", event, want)
	}
}

// A stall is a call to its disk, unless that is not wanted.
func TestKindOfStalls(t *testing.T) {
	r := reports()["span_gpu"]
	for want, show := range map[trace.SpanKind]config.Spans{
		trace.SpanKindClient:   {},
		trace.SpanKindInternal: {Stalls: config.StallsInternal},
	} {
		s := emit.WindowSpan(r, show).Children[0]
		called := slices.ContainsFunc(s.Attributes, func(kv attribute.KeyValue) bool {
			return kv.Key == semconv.ServicePeerNameKey
		})
		if got := trace.ValidateSpanKind(s.Kind); got != want || called != (want == trace.SpanKindClient) {
			t.Errorf("a stall with %+v is of kind %v with a peer %v, want %v", show, got, called, want)
		}
	}
}
