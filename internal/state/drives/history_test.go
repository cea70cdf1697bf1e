package drives

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/internal/state"
)

func TestVanished(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	b := newHistory(t, path, "boot")
	two := []sample.Drive{disk("sda", nil), disk("sdb", nil)}
	b.Round(two, noon)
	all := b.Round(two[:1], noon.Add(10*time.Minute))
	if len(all) != 2 || all[0].Device != "sdb" || all[0].Status != sample.DriveVanished || !NeedsAction(all[0].Status) ||
		!strings.Contains(all[0].Finding, "Ssdb") || !strings.Contains(all[0].Finding, "at 12:00") {
		t.Errorf("got %+v, want sdb vanished at 12:00, and sda", all)
	}
	if all := b.Assess(two[:1], Listing{}, noon.Add(time.Hour)); len(all) != 1 {
		t.Errorf("unknown listing: got %+v, want sda only", all)
	}
	if all := b.Round(nil, noon.Add(20*time.Minute)); len(all) != 2 {
		t.Errorf("both removed: got %+v, want both vanished", all)
	}
	// It stays vanished in the same boot, and for a week in later ones.
	for _, c := range []struct {
		boot  string
		after time.Duration
		want  int
	}{
		{"boot", 30 * oneDay, 2}, {"later", 6 * oneDay, 2}, {"later", 8 * oneDay, 0}, {"", 6 * oneDay, 2}, {"", 8 * oneDay, 0},
	} {
		b, err := Read(path, c.boot)
		if err != nil {
			t.Fatal(err)
		}
		if all := b.Assess(nil, listingOf(nil), noon.Add(c.after)); len(all) != c.want {
			t.Errorf("%+v: got %d vanished", c, len(all))
		}
	}
	gone, err := Forget(path, "/dev/sdb")
	if err != nil || len(gone) != 1 || gone[0].Device != "sdb" {
		t.Errorf("got %+v, %v forgotten, want sdb", gone, err)
	}
	if all := b.Round(two[:1], noon.Add(30*time.Minute)); len(all) != 1 {
		t.Errorf("after Forget by another program: got %+v, want sda only", all)
	}
	if _, err := Forget(path, "sdb"); err == nil {
		t.Error("second Forget: got no error, want one")
	}
}

// A drive that has another drive's name now has a history of its own.
func TestAnotherName(t *testing.T) {
	b := newHistory(t, "", "boot")
	b.Round([]sample.Drive{disk("sda", counts{sample.DrivePending: 3})}, noon)
	other := disk("sdz", nil)
	other.Device = "sda"
	all := b.Round([]sample.Drive{other}, noon.Add(time.Hour))
	if len(all) != 2 || all[0].Status != sample.DriveVanished || all[0].ID != "naa.sda" ||
		all[1].Status != sample.DriveOK {
		t.Errorf("got %+v, want naa.sda vanished, and a drive that is ok", all)
	}
	moved := disk("sda", counts{sample.DrivePending: 4})
	moved.Device = "sdq"
	if d := find(t, b.Round([]sample.Drive{moved, other}, noon.Add(2*time.Hour)), "sdq"); d.Status != sample.DriveFailing {
		t.Errorf("got %+v, want the growth since the drive was sda", d)
	}
}

// After a reboot, a drive that does not identify itself may be the one that had its name.
func TestUnidentified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", nil), disk("sdb", nil)}, noon)
	b := newHistory(t, path, "later")
	drives := []sample.Drive{{Device: "sda", Status: sample.DriveUnread, Err: "not permitted"}}
	all := b.Round(drives, noon.Add(time.Hour))
	if len(all) != 2 || all[0].Device != "sdb" || all[0].Status != sample.DriveVanished ||
		all[1].Status != sample.DriveUnread {
		t.Errorf("got %+v, want sdb vanished and sda unread", all)
	}
	if all := b.Round(nil, noon.Add(2*time.Hour)); len(all) != 2 {
		t.Errorf("none listed: got %+v, want both vanished", all)
	}
	other := disk("sdz", nil)
	other.Device, other.Status, other.Err = "sda", sample.DriveUnread, "not permitted"
	if all := b.Round([]sample.Drive{other}, noon.Add(3*time.Hour)); len(all) != 3 {
		t.Errorf("another drive as sda: got %+v, want both vanished and it", all)
	}
}

func TestAsleep(t *testing.T) {
	b := newHistory(t, "", "boot")
	logged := disk("sdd", nil)
	logged.Exit = smart.ExitErrors
	b.Round([]sample.Drive{
		disk("sda", counts{sample.DrivePowerOn: 3600}), disk("sdb", counts{sample.DrivePending: 3}), logged,
	}, noon)
	asleep := func(name string) sample.Drive {
		return sample.Drive{Device: name, Status: sample.DriveAsleep, At: noon.Add(time.Hour)}
	}
	all := b.Round([]sample.Drive{asleep("sda"), asleep("sdb"), asleep("sdc"), asleep("sdd")}, noon.Add(time.Hour))
	if len(all) != 4 {
		t.Fatalf("got %+v, want 4 drives", all)
	}
	d := find(t, all, "sda")
	v, _ := d.Values.Get(sample.DrivePowerOn)
	if d.Status != sample.DriveAsleep || v != 3600 || !d.At.Equal(noon) || d.ID != "naa.sda" {
		t.Errorf("got %+v, want sda asleep with its last values", d)
	}
	if d := find(t, all, "sdb"); d.Status != sample.DriveDegraded || !strings.Contains(d.Finding, "It sleeps") {
		t.Errorf("got %+v, want sdb degraded and asleep", d)
	}
	if d := find(t, all, "sdc"); d.Status != sample.DriveAsleep || d.ID != "" {
		t.Errorf("got %+v, want sdc asleep and unknown", d)
	}
	d = find(t, all, "sdd")
	if d.Status != sample.DriveAsleep || !strings.Contains(d.Finding, "harmless on its own. It sleeps") {
		t.Errorf("got %+v, want sdd asleep with its error log", d)
	}
}

func TestSilent(t *testing.T) {
	b := newHistory(t, "", "boot")
	b.Round([]sample.Drive{disk("sda", nil)}, noon)
	silent := []sample.Drive{{Device: "sda", Status: sample.DriveUnread, Silent: true, Err: "no response"}}
	round := func(minutes int, drives []sample.Drive, want sample.DriveStatus) sample.Drive {
		t.Helper()
		d := b.Round(drives, noon.Add(time.Duration(minutes)*time.Minute))[0]
		if d.Status != want {
			t.Errorf("after %d min: got %+v, want %s", minutes, d, want)
		}
		return d
	}
	if d := round(10, silent, sample.DriveUnread); d.Model != "Model sda" || d.ID != "naa.sda" {
		t.Errorf("got %+v, want the model and ID of the record", d)
	}
	if d := round(20, silent, sample.DriveFailed); !strings.Contains(d.Finding, "2 times in a row") {
		t.Errorf("got finding %q, want 2 times in a row", d.Finding)
	}
	round(30, []sample.Drive{disk("sda", nil)}, sample.DriveOK)
	round(40, silent, sample.DriveUnread)
}

func TestGrowth(t *testing.T) {
	b := newHistory(t, "", "boot")
	monday := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	count := func(at time.Time, n float64) sample.Drive {
		return b.Round([]sample.Drive{disk("sda", counts{sample.DriveReallocated: n})}, at)[0]
	}
	for d := -40; d <= 0; d++ {
		if got := count(monday.AddDate(0, 0, d), 272); got.Status != sample.DriveDegraded {
			t.Fatalf("day %d: got %+v, want degraded", d, got)
		}
	}
	count(monday.Add(36*time.Hour), 290)
	want := "sda has 312 reallocated sectors, 40 of them since Monday (13 a day)."
	if got := count(monday.Add(75*time.Hour), 312); got.Finding != want || got.Status != sample.DriveFailing {
		t.Errorf("got %s, %q, want failing, %q", got.Status, got.Finding, want)
	}
	// A week after the last growth, the count no longer grows.
	for d := range 12 {
		count(monday.Add(75*time.Hour).AddDate(0, 0, d), 312)
	}
	if got := count(monday.AddDate(0, 0, 20), 312); got.Status != sample.DriveDegraded {
		t.Errorf("got %+v, want degraded", got)
	}
	// A count that decreases, for example after an erase, grows from its new value.
	if got := count(monday.AddDate(0, 0, 21), 5); got.Status != sample.DriveDegraded {
		t.Errorf("decreased: got %+v, want degraded", got)
	}
	got := count(monday.AddDate(0, 0, 21).Add(time.Hour), 6)
	if got.Status != sample.DriveFailing || !strings.Contains(got.Finding, "1 of them since 09:00") {
		t.Errorf("got %+v, want failing since 09:00", got)
	}
}

// Growth is detected within the first hour.
func TestGrowthWithinAnHour(t *testing.T) {
	b := newHistory(t, "", "boot")
	for i := range 20 {
		d := disk("sda", counts{sample.DrivePending: float64(i)})
		got := b.Round([]sample.Drive{d}, noon.Add(time.Duration(i)*10*time.Minute))[0]
		if want := i > 0; (got.Status == sample.DriveFailing) != want {
			t.Errorf("round %d: got %+v, want failing: %v", i, got, want)
		}
	}
}

// Five years of rounds leave a bounded history.
func TestBounds(t *testing.T) {
	h := newHistory(t, "", "boot")
	h.file = nil // in memory: faster
	for i := range 5 * 365 {
		for hour := range 3 {
			d := disk("sda", counts{sample.DriveReallocated: float64(i)})
			h.Round([]sample.Drive{d}, noon.AddDate(0, 0, i).Add(time.Duration(hour)*time.Hour))
		}
	}
	if n := len(h.records["naa.sda"].Counts); n > (MaxDays+1)*maxCountsPerDay {
		t.Errorf("got %d counts, want at most %d", n, (MaxDays+1)*maxCountsPerDay)
	}
	for i := range 2 * MaxDrives {
		d := disk("sda", nil)
		d.ID, d.Serial = "id"+strings.Repeat("x", i), strings.Repeat("x", i)
		h.Round([]sample.Drive{d}, noon.AddDate(5, 0, 0).Add(time.Duration(i)*time.Second))
	}
	if n := len(h.records); n != MaxDrives {
		t.Errorf("got %d drives, want %d", n, MaxDrives)
	}
}

func TestDamagedFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "drives.json")
	newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", nil)}, noon)
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(bytes)
	damaged := map[string]string{
		"cut": whole[:len(whole)/2], "changed": strings.Replace(whole, "Model sda", "Model sdb", 1), "other": "hello\n",
		"newer": strings.Replace(whole, `"version":2`, `"version":3`, 1),
	}
	for name, text := range damaged {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, ""); err == nil {
			t.Errorf("%s: Read: got no error, want one", name)
		}
		var problems []error
		h := Open(path, "boot", func(err error) { problems = append(problems, err) })
		if all := h.Round([]sample.Drive{disk("sda", nil)}, noon); len(all) != 1 {
			t.Errorf("%s: got %+v, want one drive", name, all)
		}
		if len(problems) != 1 || strings.Count(problems[0].Error(), "it is now ") != 1 ||
			strings.Contains(problems[0].Error(), "\n") {
			t.Errorf("%s: got problems %v, want one line with the new name", name, problems)
		}
		if h, err := Read(path, ""); err != nil || len(h.records) != 1 {
			t.Errorf("%s: got error %v, want a new file with one drive", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != len(damaged)+2 {
		t.Errorf("got files %q, want drives.json, its lock and %d quarantined ones", left, len(damaged))
	}
}

// A file that cannot be read is not overwritten, and the history goes on in memory.
func TestUnreadableFile(t *testing.T) {
	path := t.TempDir() // a folder
	var problems []error
	h := Open(path, "boot", func(err error) { problems = append(problems, err) })
	h.Round([]sample.Drive{disk("sda", nil)}, noon)
	if all := h.Round(nil, noon.Add(time.Minute)); len(problems) != 1 || len(all) != 1 {
		t.Errorf("got problems %v and %+v, want one of each", problems, all)
	}
}

// Without drives no file is created.
func TestNoFileWithoutDrives(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	newHistory(t, filepath.Join(folder, "drives.json"), "boot").Round(nil, noon)
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("got %s, want no folder", folder)
	}
}

func TestNilHistory(t *testing.T) {
	var h *History
	if all := h.Round([]sample.Drive{disk("sda", nil)}, noon); len(all) != 1 || all[0].Status != sample.DriveOK {
		t.Errorf("got %+v, want one drive that is ok", all)
	}
}

// Rounds whose write fails, as on a full disk, build on each other and on the file.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", counts{sample.DrivePending: 1})}, noon)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	problems := 0
	h := Open(path, "boot", func(error) { problems++ })
	h.file.MaxSize = int(info.Size()) // one more field does not fit
	silent := []sample.Drive{{Device: "sda", Status: sample.DriveUnread, Silent: true, Err: "no response"}}
	for i := range 2 {
		h.Round(silent, noon.Add(time.Duration(i+1)*time.Minute))
	}
	if d := h.Assess(silent, listingOf(silent), noon.Add(3*time.Minute))[0]; d.Status != sample.DriveFailed {
		t.Errorf("got %+v, want failed after 2 silent rounds", d)
	}
	if problems != 1 {
		t.Errorf("got %d problems, want 1", problems)
	}
}

// A history that cannot be locked, as in a read-only folder, is used all the same.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	newHistory(t, path, "boot").Round([]sample.Drive{disk("sda", counts{sample.DrivePending: 1})}, noon)
	lock, err := os.Open(filepath.Join(filepath.Dir(path), ".drives.json.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := state.Lock(lock, 0); err != nil {
		t.Fatal(err)
	}
	h := Open(path, "boot", func(error) {})
	h.file.Wait = time.Millisecond
	grown := []sample.Drive{disk("sda", counts{sample.DrivePending: 3})}
	if d := h.Round(grown, noon.Add(oneDay))[0]; d.Status != sample.DriveFailing {
		t.Errorf("got %+v, want failing because the count has grown", d)
	}
}
