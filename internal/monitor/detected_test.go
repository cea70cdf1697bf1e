package monitor

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// reports are those that a monitor has made.
type reports struct {
	mu  sync.Mutex
	all []*window.Report
}

func (r *reports) add(one *window.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *reports) of(kind window.Kind) (list []*window.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if one.Kind == kind {
			list = append(list, one)
		}
	}
	return list
}

// noSpan is a span that is not sent.
type noSpan struct{}

func (noSpan) End(emit.Span)                  {}
func (noSpan) Drop()                          {}
func (noSpan) SpanContext() trace.SpanContext { return trace.SpanContext{} }
func (noSpan) Exemplar() trace.SpanContext    { return trace.SpanContext{} }

// taker returns a client that takes detected windows.
func taker(m *Monitor) *windows.Client {
	c := m.Windows.NewClient(windows.Options{Durations: &emit.Durations{},
		Spans: func(string, time.Time, trace.SpanContext) windows.Span { return noSpan{} }})
	c.TakeDetected()
	return c
}

// reader reads 16 MiB of a file in 1.6 s into its memory, and keeps it open until it is killed.
const reader = `exec 3<"$0"; i=0; data=; while [ $i -lt 16 ]; do
data=$data$(head -c 1048576 <&3 | tr '\0' a); sleep 0.1; i=$((i+1)); done
exec 4</dev/zero; read line`

// A load that is going on when its job is left is reported for the job and its user, and then the job is gone.
func TestLoadOfAJobThatIsLeft(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(model, make([]byte, 18<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var got reports
	m := watching(t, Config{Detect: true, Reports: got.add})
	taker(m)
	c := exec.Command("sh", "-c", reader, model)
	input, err := c.StdinPipe() // it waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	job := m.Jobs.JobOf(c.Process.Pid)
	if err := m.Jobs.Follow(job, c.Process.Pid, "", false); err != nil {
		t.Fatal(err)
	}
	m.Jobs.Keep(job) // as a look does, which may be late on a busy machine
	time.Sleep(3 * time.Second)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	m.Jobs.Unfollow(job)
	for i := 0; len(got.of(window.ModelLoad)) == 0; i++ {
		if i > 1000 {
			t.Fatal("got no load, want one of the job that was left")
		}
		time.Sleep(10 * time.Millisecond)
	}
	r := got.of(window.ModelLoad)[0]
	if r.Job != job || r.Scope != window.Process || r.Client != "" || r.Path != model {
		t.Errorf("got the job %q, scope %s, client %q, path %q; want %q, %s, this user and %q",
			r.Job, r.Scope, r.Client, r.Path, job, window.Process, model)
	}
	for i := 0; ; i++ {
		if _, _, followed := m.readings.Followed(job); !followed {
			break
		}
		if i > 1000 {
			t.Fatal("the job is still followed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What is found of a job that is not followed any more would be about the whole machine, and has no owner.
func TestDetectedWithoutJob(t *testing.T) {
	var got reports
	m := watching(t, Config{Reports: got.add})
	now := m.Now().At.Mono
	m.Windows.Detected([]detect.Found{{Kind: window.ModelLoad, Job: "gone", Start: now - time.Second, End: now}})
	time.Sleep(100 * time.Millisecond)
	if all := got.of(window.ModelLoad); len(all) != 0 || m.Windows.DetectedLeft() != 1 {
		t.Errorf("got %d reports and %d left out, want none and 1", len(all), m.Windows.DetectedLeft())
	}
}

// A report says whose window it is: of the job with a name that has its process, unless that belongs to another user.
func TestWhoseWindow(t *testing.T) {
	var got reports
	m := watching(t, Config{Reports: got.add})
	c := taker(m)
	pid := os.Getpid()
	for _, test := range []struct{ job, client, want string }{
		{"named", "", "llm"}, {"foreign", "uid 7", ""},
	} {
		if err := m.Jobs.Follow(test.job, pid, "", false); err != nil {
			t.Fatal(err)
		}
		who := sample.JobName{ID: test.job, PID: pid, Name: "llm", User: "ann", Client: test.client}
		m.readings.Name(who)
		if err := m.Jobs.Follow("own", pid, "", false); err != nil {
			t.Fatal(err)
		}
		w := window.Window{Kind: window.Epoch, Source: window.Announced, PID: pid, Job: "own"}
		id, _, err := c.BeginAt(w, m.Now(), trace.SpanContext{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		r, err := c.EndAt(id, m.Now(), window.Outcome{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Who.Name != test.want || test.want != "" && !r.Who.Equal(who) {
			t.Errorf("%s: got a window of %+v, want %q", test.job, r.Who, test.want)
		}
		m.Jobs.Unfollow("own")
		m.Jobs.Unfollow(test.job)
	}
}

// A user gets a quarter of the detected windows of an hour, however many jobs it has.
func TestDetectedOfAUser(t *testing.T) {
	m := watching(t, Config{})
	const jobs, each = 4, 60
	now := m.Now().At.Mono
	list := make([]detect.Found, 0, jobs*each)
	for n := range jobs {
		job := fmt.Sprint("job ", n)
		if err := m.Jobs.Follow(job, os.Getpid(), "", false); err != nil {
			t.Fatal(err)
		}
		defer m.Jobs.Unfollow(job)
		for range each {
			list = append(list, detect.Found{Kind: window.ModelLoad, Job: job, Owner: "uid 7", Start: now - 1, End: now})
		}
	}
	m.Windows.Detected(list)
	if got, want := m.Windows.DetectedLeft(), uint64(jobs*each-480/4); got != want {
		t.Errorf("got %d left out, want %d", got, want)
	}
}

// The second of two clients gets the detected windows when the first one is closed.
func TestDetectedTakenOver(t *testing.T) {
	m := watching(t, Config{})
	a, b := taker(m), taker(m)
	a.TakeDetected() // again: nothing changes
	if a.HasDetectedAlone() || b.HasDetectedAlone() {
		t.Error("got one that has them alone, want two")
	}
	a.Close()
	if !m.Windows.TakesDetected() || !b.HasDetectedAlone() {
		t.Error("after the first was closed: no client takes windows, want the second")
	}
	b.Close()
	if m.Windows.TakesDetected() {
		t.Error("after both were closed: a client takes windows, want none")
	}
}

// Ranks that load the parts of a model are jobs of their own, and their load is one. Another program's is another.
func TestLoadOfRanks(t *testing.T) {
	var got reports
	m := watching(t, Config{Reports: got.add})
	for _, job := range []string{"rank 0", "rank 1", "other"} {
		if err := m.Jobs.Follow(job, os.Getpid(), "", false); err != nil {
			t.Fatal(err)
		}
		defer m.Jobs.Unfollow(job)
	}
	time.Sleep(200 * time.Millisecond)
	now := m.Now().At.Mono
	const ms = time.Millisecond
	load := func(job, path string, parent int, start, end time.Duration) detect.Found {
		return detect.Found{Kind: window.ModelLoad, Job: job, Path: path, Parent: parent, Start: now - start, End: now - end}
	}
	m.Windows.Detected([]detect.Found{
		load("rank 0", "/m/llama", 7, 100*ms, 20*ms),
		load("rank 1", "/m/llama/3.safetensors", 7, 90*ms, 10*ms), // the same
		load("rank 1", "/m/llama", 7, 15*ms, 5*ms),                // the next
		load("rank 1", "/m/mistral", 7, 95*ms, 20*ms),             // another model
		load("other", "/m/llama", 8, 100*ms, 20*ms),               // of another program
	})
	time.Sleep(100 * time.Millisecond)
	paths := map[string]int{}
	for _, r := range got.of(window.ModelLoad) {
		paths[r.Path+" of "+r.Job]++
	}
	want := map[string]int{
		"/m/llama of rank 0": 1, "/m/llama of rank 1": 1, "/m/mistral of rank 1": 1, "/m/llama of other": 1,
	}
	if !maps.Equal(paths, want) || m.Windows.DetectedLeft() != 0 {
		t.Errorf("got %v, and %d left out, want %v and 0", paths, m.Windows.DetectedLeft(), want)
	}
}

// A load of a rank for which there was no place does not stand for those of the other ranks.
func TestLoadOfRanksWithoutRoom(t *testing.T) {
	var got reports
	m := watching(t, Config{Reports: got.add})
	for _, job := range []string{"rank 0", "rank 1", "rank 2"} {
		if err := m.Jobs.Follow(job, os.Getpid(), "", false); err != nil {
			t.Fatal(err)
		}
		defer m.Jobs.Unfollow(job)
	}
	time.Sleep(200 * time.Millisecond)
	now := m.Now().At.Mono
	load := func(job string) detect.Found {
		return detect.Found{Kind: window.ModelLoad, Job: job, Path: "/m/llama", Parent: 7, Start: now - 100*time.Millisecond,
			End: now - 20*time.Millisecond}
	}
	// The jobs of this program's own user have a share each.
	places := make([]detect.Found, 480/4)
	for i := range places {
		places[i] = detect.Found{Kind: window.Custom, Job: "rank 0", Start: now - 1, End: now}
	}
	m.Windows.Detected(places)
	m.Windows.Detected([]detect.Found{load("rank 0"), load("rank 1"), load("rank 2")})
	for i := 0; len(got.of(window.ModelLoad)) == 0 && i < 500; i++ { // a driver's samples come late
		time.Sleep(10 * time.Millisecond)
	}
	if all := got.of(window.ModelLoad); len(all) != 1 || all[0].Job != "rank 1" || m.Windows.DetectedLeft() != 1 {
		t.Errorf("got %d loads, and %d left out, want that of rank 1, and 1", len(all), m.Windows.DetectedLeft())
	}
}

// A load that began before its job was followed begins when it did, if most of it was read.
func TestLoadThatBeganBefore(t *testing.T) {
	var got reports
	m := watching(t, Config{Reports: got.add})
	time.Sleep(500 * time.Millisecond)
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	defer m.Jobs.Unfollow("job")
	time.Sleep(time.Second)
	since, _, _ := m.readings.Followed("job")
	m.Windows.Detected([]detect.Found{
		{Kind: window.ModelLoad, Model: "a", Job: "job", Start: since - 100*time.Millisecond, End: since + 900*time.Millisecond},
		{Kind: window.ModelLoad, Model: "b", Job: "job", Start: since - 300*time.Millisecond, End: since + 700*time.Millisecond},
	})
	for i := 0; len(got.of(window.ModelLoad)) < 2; i++ {
		if i > 500 {
			t.Fatalf("got %d loads, want two", len(got.of(window.ModelLoad)))
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, r := range got.of(window.ModelLoad) {
		before, job := 100*time.Millisecond, "job"
		if r.Model == "b" { // too little of it was read
			before, job = 300*time.Millisecond, ""
		}
		if r.Start.Mono != since-before || r.Job != job {
			t.Errorf("%s: got a begin %v before the job was followed and the job %q, want %v and %q",
				r.Model, since-r.Start.Mono, r.Job, before, job)
		}
	}
}

// By default loads are looked for, and what is found of other kinds is left out.
func TestDetectByDefault(t *testing.T) {
	for setting, want := range map[string][2]bool{
		"": {true, false}, config.Auto: {true, false}, config.All: {true, true}, config.Off: {false, false},
	} {
		s := config.DefaultSampling()
		s.Detect = setting
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if c := NewConfig(s); c.Detect != want[0] || c.DetectAll != want[1] {
			t.Errorf("%q: got %v, %v, want %v", setting, c.Detect, c.DetectAll, want)
		}
	}
	var got reports
	m := watching(t, Config{Reports: got.add})
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	defer m.Jobs.Unfollow("job")
	time.Sleep(100 * time.Millisecond)
	now := m.Now().At.Mono
	var all []detect.Found
	for _, kind := range []window.Kind{window.Checkpoint, window.ModelLoad, window.Epoch} {
		all = append(all, detect.Found{Kind: kind, Job: "job", Start: now - 50*time.Millisecond, End: now})
	}
	m.loadsOnly(all)
	for i := 0; len(got.of(window.ModelLoad)) == 0; i++ {
		if i > 500 {
			t.Fatal("got no load, want one")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := len(got.of(window.Checkpoint)) + len(got.of(window.Epoch)); n != 0 {
		t.Errorf("got %d windows of other kinds, want none", n)
	}
}
