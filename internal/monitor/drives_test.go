package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/drives"
	"github.com/stallspan/stallspan/internal/fixture"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/internal/window"
)

// answers is a smartctl that prints a document of a drive that has so many reallocated sectors.
func answers(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	path := filepath.Join(t.TempDir(), "smartctl")
	text := `#!/bin/sh
n=$(cat "$0.count" 2>&1) || n=0
echo $((n + 1)) > "$0.count"
cat <<END
{"smartctl": {"version": [7, 4], "exit_status": 0}, "device": {"name": "/dev/sdq", "protocol": "ATA"},
 "model_name": "Example", "serial_number": "1", "smart_status": {"passed": true},
 "ata_smart_attributes": {"table": [{"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": $n}}]}}
END
`
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Drives are asked, judged by their history, and told in the snapshot and to listeners.
func TestDrives(t *testing.T) {
	history := filepath.Join(t.TempDir(), "drives.json")
	m, err := New(Config{Drives: &Drives{History: history, Ask: drives.Options{
		Smartctl: answers(t), Only: true, Disks: []drives.Disk{{Device: "/dev/sdq"}}, Every: 10 * time.Millisecond,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	rounds := make(chan sample.Drive, 100)
	defer m.OnDrives(func(all []sample.Drive) {
		if len(rounds) < cap(rounds) {
			rounds <- all[0]
		}
	})()
	m.Start()
	defer m.Stop()
	first, second := <-rounds, <-rounds
	if first.Status != sample.DriveOK || second.Status != sample.DriveFailing || !strings.Contains(second.Finding, "1 reallocated sector, all since") {
		t.Errorf("%+v, then %+v", first, second)
	}
	if now := m.Collect().Drives; len(now.Drives) != 1 || now.Drives[0].Device != "sdq" || now.At.Wall.IsZero() {
		t.Errorf("%+v", now)
	}
	if info, err := os.Stat(history); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Without smartctl one line says so, unless nobody has asked for drives.
func TestDrivesWithoutSmartctl(t *testing.T) {
	for auto, want := range map[bool]int{true: 0, false: 1} {
		m, err := New(Config{Drives: &Drives{Auto: auto, Ask: drives.Options{
			Smartctl: "/nowhere/smartctl", Only: true, Disks: []drives.Disk{{Device: "/dev/sdq"}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		source, err := smart.New(m.drives.config.Ask)
		if err != nil {
			t.Fatal(err)
		}
		all, err := source.Round(t.Context())
		m.drives.take(m, "smart", &sample.Sample{At: sample.Now(), Drives: all}, err)
		n := 0
		for _, p := range m.Problems() {
			if strings.HasPrefix(p.Error(), "smart: ") {
				n++
			}
		}
		if n != want {
			t.Errorf("auto %v: %v", auto, m.Problems())
		}
		m.Stop()
	}
}

// Who is not asked any more, because the config says so or the disks cannot be listed, has not vanished; who is not there has.
func TestDrivesListed(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"sda", "sdb", "sdc"} {
		fixture.Write(t, root, "sys/class/block/"+name+"/device/type", []byte("0\n"))
	}
	m, err := New(Config{Drives: &Drives{Ask: drives.Options{Smartctl: "/nowhere/smartctl"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	m.drives.config.Ask.Root = root
	m.drives.history = drives.Open("", "boot", func(err error) { t.Error(err) })
	round := func(want string, err error, names ...string) {
		t.Helper()
		s := &sample.Sample{At: sample.Now()}
		for _, name := range names {
			d := sample.Drive{ID: "naa.5" + name, Device: name, Model: "Example", Serial: name, Assessment: sample.DrivePassed}
			d.Values.Set(sample.DriveReallocated, 0)
			s.Drives = append(s.Drives, d)
		}
		m.drives.take(m, "smart", s, err)
		var got []string
		for _, d := range m.Collect().Drives.Drives {
			got = append(got, d.Device+" "+string(d.Status))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
	round("sda ok, sdb ok, sdc ok", nil, "sda", "sdb", "sdc")
	m.drives.config.Ask.Disks = []drives.Disk{{Device: "/dev/sdb", Off: true}}
	round("sda ok, sdc ok", nil, "sda", "sdc")
	block := filepath.Join(root, "sys/class/block")
	if err := os.Rename(block, block+"s"); err != nil {
		t.Fatal(err)
	}
	round("sda ok", errors.New("the machine's disks cannot be listed"), "sda")
	if err := os.Rename(block+"s", block); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(block, "sdc")); err != nil {
		t.Fatal(err)
	}
	round("sdc vanished, sda ok", nil, "sda")
}

// stuck is a stream that does not end when it should, as one does whose history lies on a disk that hangs.
type stuck struct{ free chan struct{} }

func (s *stuck) Run(context.Context, sample.Sink) { <-s.free }
func (s *stuck) CatchUp(context.Context)          {}

// Sampling goes on beside it, and Stop does not wait for it for ever.
func TestDrivesStuck(t *testing.T) {
	s := &stuck{make(chan struct{})}
	m, err := New(Config{Drives: &Drives{}})
	if err != nil {
		t.Fatal(err)
	}
	m.drives.stream = s
	m.Start()
	began := time.Now()
	for first := m.Collect().Cores.At.Mono; m.Collect().Cores.At.Mono < first+time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Error("nothing is sampled")
			break
		}
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("Stop waits for a disk that hangs")
	}
	close(s.free)
	<-stopped
	<-m.drives.ended
}

// What is known of a disk under a load that waited for it is found again in the recording, in the same words.
func TestReplayOfDrives(t *testing.T) {
	p := newTape(t)
	var reports []*window.Report
	m, feed := p.fed(func(r *window.Report) { reports = append(reports, r) })
	defer m.Stop()
	mark := func(mark recording.Mark) { feed(recording.Entry{Mark: &mark}) }
	edge := func(number uint64, i int) *sample.Stamp {
		at := round(i)[0].At
		mark(recording.Mark{Op: recording.Edge, Edge: number, At: &at})
		return &at
	}
	mark(recording.Mark{Op: recording.Follow, ID: "train", Scope: "/job", OwnScope: true})
	for i := range 62 {
		if i == 15 { // within the first window: it is judged by what is known at its end
			feed(recording.Entry{Source: "smart", Sample: &sample.Sample{At: round(i)[0].At, Drives: []sample.Drive{
				{ID: "1", Device: "vda", Status: sample.DriveFailing, Finding: "vda has 312 reallocated sectors, 40 of them since Monday.", Remedy: "Replace it."},
				{ID: "2", Device: "vdb", Status: sample.DriveFailed, Finding: "vdb is another.", Remedy: "Replace it."},
			}}})
		}
		for _, s := range round(i) {
			feed(recording.Entry{Source: "some", Sample: s})
		}
		mark(recording.Mark{Op: recording.Tick})
		switch i {
		case 10:
			mark(recording.Mark{Op: recording.Begin, Edge: 1, At: edge(1, i), ID: "A", Window: &recording.Window{Kind: window.ModelLoad, Job: "train"}})
		case 60:
			mark(recording.Mark{Op: recording.End, Edge: 2, At: edge(2, i), ID: "A"})
		}
	}
	p.replaysTheSame()
	if len(reports) != 1 || reports[0].Verdict != window.StorageBound {
		t.Fatalf("%+v", reports)
	}
	if got := text(t, reports[0]); !strings.Contains(got, `"findings":[{"kind":"disk_failing","text":"vda has 312 reallocated sectors, 40 of them since Monday.","remedy":"Replace it."}]`) {
		t.Error(got)
	}
}
