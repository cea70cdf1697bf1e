package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/internal/state/drives"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// answers returns a smartctl for a drive with one more reallocated sector per call.
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

// drivesJournal is a journal that keeps the first drive of each reading of drives.
type drivesJournal chan sample.Drive

func (j drivesJournal) Write(e *recording.Entry) error {
	if e.Sample != nil && len(e.Sample.Drives) > 0 && len(j) < cap(j) {
		j <- e.Sample.Drives[0]
	}
	return nil
}

// Drives are read, judged by their history, and passed to the snapshot and to the journal.
func TestDrives(t *testing.T) {
	history := filepath.Join(t.TempDir(), "drives.json")
	rounds := make(drivesJournal, 100)
	m, err := New(Config{Journal: rounds, Drives: &Drives{History: history, Ask: drives.Options{
		Smartctl: answers(t), Only: true, Disks: []drives.Disk{{Device: "/dev/sdq"}}, Every: 10 * time.Millisecond,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	first, second := <-rounds, <-rounds
	failing := second.Status == sample.DriveFailing && strings.Contains(second.Finding, "1 reallocated sector, all since")
	if first.Status != sample.DriveOK || !failing {
		t.Errorf("got %+v, then %+v, want ok, then failing", first, second)
	}
	if now := m.Collect().Drives; len(now.Drives) != 1 || now.Drives[0].Device != "sdq" || now.At.Wall.IsZero() {
		t.Errorf("got %+v, want one reading of sdq", now)
	}
	if info, err := os.Stat(history); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file with mode 0600", info, err)
	}
}

// A missing smartctl is one problem, unless drives are checked automatically.
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
			t.Errorf("auto %v: got the problems %v, want %d of smart", auto, m.Problems(), want)
		}
		m.Stop()
	}
}

// A drive that is excluded by the config, or while the disks cannot be listed, has not vanished. One that is gone has.
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
			t.Errorf("got %s, want %s", text, want)
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

// stuck is a stream that does not end with its context, like one with its history on a disk that hangs.
type stuck struct{ free chan struct{} }

func (s *stuck) Run(context.Context, sample.Sink) { <-s.free }
func (s *stuck) CatchUp(context.Context)          {}

// Sampling continues, and Stop gives up after a while.
func TestDrivesStuck(t *testing.T) {
	t.Parallel()
	s := &stuck{make(chan struct{})}
	m, err := New(Config{Drives: &Drives{}})
	if err != nil {
		t.Fatal(err)
	}
	m.drives.stream = s
	m.Start()
	began := time.Now()
	newest := func() time.Duration { return m.Collect().Cores.At.Mono }
	for first := newest(); newest() < first+time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Error("got no reading within a minute")
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
		t.Error("Stop did not return within a minute")
	}
	close(s.free)
	<-stopped
	<-m.drives.ended
}

// A replay finds the health of the disk that a load waited for, in the same words.
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
			load := &recording.Window{Kind: window.ModelLoad, Job: "train"}
			mark(recording.Mark{Op: recording.Begin, Edge: 1, At: edge(1, i), ID: "A", Window: load})
		case 60:
			mark(recording.Mark{Op: recording.End, Edge: 2, At: edge(2, i), ID: "A"})
		}
	}
	p.replaysTheSame()
	if len(reports) != 1 || reports[0].Verdict != window.StorageBound {
		t.Fatalf("got %+v, want one storage-bound load", reports)
	}
	if got := text(t, reports[0]); !strings.Contains(got, `"findings":[{"kind":"disk_failing","text":"vda has 312 reallocated sectors, 40 of them since Monday.","remedy":"Replace it."}]`) {
		t.Errorf("got %s, want the finding of vda alone", got)
	}
}
