package drives

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

func TestVanished(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	b := book(t, path, "boot")
	two := []sample.Drive{disk("sda", nil), disk("sdb", nil)}
	b.Round(two, noon)
	all := b.Round(two[:1], noon.Add(10*time.Minute))
	if len(all) != 2 || all[0].Device != "sdb" || all[0].Status != sample.DriveVanished || !strings.Contains(all[0].Finding, "Ssdb") ||
		!strings.Contains(all[0].Finding, "at 12:00") || !Bad(all[0].Status) {
		t.Errorf("%+v", all)
	}
	if all := b.Look(two[:1], Listing{}, noon.Add(time.Hour)); len(all) != 1 {
		t.Errorf("vanished, though not all were asked: %+v", all)
	}
	if all := b.Round(nil, noon.Add(20*time.Minute)); len(all) != 2 {
		t.Errorf("the last one: %+v", all)
	}
	// In the same boot it stays vanished; in a later one it is told for a week.
	for _, c := range []struct {
		boot  string
		after time.Duration
		want  int
	}{{"boot", 30 * oneDay, 2}, {"later", 6 * oneDay, 2}, {"later", 8 * oneDay, 0}, {"", 6 * oneDay, 2}, {"", 8 * oneDay, 0}} {
		b, err := Read(path, c.boot)
		if err != nil {
			t.Fatal(err)
		}
		if all := b.Look(nil, lists(nil), noon.Add(c.after)); len(all) != c.want {
			t.Errorf("%v: %d vanished", c, len(all))
		}
	}
	gone, err := Forget(path, "/dev/sdb")
	if err != nil || len(gone) != 1 || gone[0].Device != "sdb" {
		t.Errorf("forgotten: %+v, %v", gone, err)
	}
	if all := b.Round(two[:1], noon.Add(30*time.Minute)); len(all) != 1 {
		t.Errorf("a program that has the file does not hear of it: %+v", all)
	}
	if _, err := Forget(path, "sdb"); err == nil {
		t.Error("forgotten twice")
	}
}

// A drive that took the name of another is a drive of its own.
func TestAnotherName(t *testing.T) {
	b := book(t, "", "boot")
	b.Round([]sample.Drive{disk("sda", counts{sample.DrivePending: 3})}, noon)
	other := disk("sdz", nil)
	other.Device = "sda"
	all := b.Round([]sample.Drive{other}, noon.Add(time.Hour))
	if len(all) != 2 || all[0].Status != sample.DriveVanished || all[0].ID != "naa.sda" || all[1].Status != sample.DriveOK {
		t.Errorf("%+v", all)
	}
	moved := disk("sda", counts{sample.DrivePending: 4})
	moved.Device = "sdq"
	if d := one(t, b.Round([]sample.Drive{moved, other}, noon.Add(2*time.Hour)), "sdq"); d.Status != sample.DriveFailing {
		t.Errorf("its history did not move with it: %+v", d)
	}
}

// After a start of the machine, one that does not tell what it is may be the one that had its name.
func TestNameless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	book(t, path, "boot").Round([]sample.Drive{disk("sda", nil), disk("sdb", nil)}, noon)
	b := book(t, path, "later")
	asked := []sample.Drive{{Device: "sda", Status: sample.DriveUnread, Err: "not permitted"}}
	all := b.Round(asked, noon.Add(time.Hour))
	if len(all) != 2 || all[0].Device != "sdb" || all[0].Status != sample.DriveVanished || all[1].Status != sample.DriveUnread {
		t.Errorf("%+v", all)
	}
	if all := b.Round(nil, noon.Add(2*time.Hour)); len(all) != 2 {
		t.Errorf("gone for sure: %+v", all)
	}
	other := disk("sdz", nil)
	other.Device, other.Status, other.Err = "sda", sample.DriveUnread, "not permitted"
	if all := b.Round([]sample.Drive{other}, noon.Add(3*time.Hour)); len(all) != 3 {
		t.Errorf("another drive has its name: %+v", all)
	}
}

func TestAsleep(t *testing.T) {
	b := book(t, "", "boot")
	logged := disk("sdd", nil)
	logged.Exit = smart.ExitErrors
	b.Round([]sample.Drive{disk("sda", counts{sample.DrivePowerOn: 3600}), disk("sdb", counts{sample.DrivePending: 3}), logged}, noon)
	asleep := func(name string) sample.Drive {
		return sample.Drive{Device: name, Status: sample.DriveAsleep, At: noon.Add(time.Hour)}
	}
	all := b.Round([]sample.Drive{asleep("sda"), asleep("sdb"), asleep("sdc"), asleep("sdd")}, noon.Add(time.Hour))
	if len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	d := one(t, all, "sda")
	if v, _ := d.Values.Get(sample.DrivePowerOn); d.Status != sample.DriveAsleep || v != 3600 || !d.At.Equal(noon) || d.ID != "naa.sda" {
		t.Errorf("sda: %+v", d)
	}
	if d := one(t, all, "sdb"); d.Status != sample.DriveDegraded || !strings.Contains(d.Finding, "It sleeps") {
		t.Errorf("sdb: %+v", d)
	}
	if d := one(t, all, "sdc"); d.Status != sample.DriveAsleep || d.ID != "" {
		t.Errorf("sdc: %+v", d)
	}
	if d := one(t, all, "sdd"); d.Status != sample.DriveAsleep || !strings.Contains(d.Finding, "no reason to worry. It sleeps") {
		t.Errorf("sdd: %+v", d)
	}
}

func TestSilent(t *testing.T) {
	b := book(t, "", "boot")
	b.Round([]sample.Drive{disk("sda", nil)}, noon)
	silent := []sample.Drive{{Device: "sda", Status: sample.DriveUnread, Silent: true, Err: "smartctl has not ended within 30s"}}
	if d := b.Round(silent, noon.Add(10*time.Minute))[0]; d.Status != sample.DriveUnread || d.Model != "Model sda" || d.ID != "naa.sda" {
		t.Errorf("once: %+v", d)
	}
	if d := b.Round(silent, noon.Add(20*time.Minute))[0]; d.Status != sample.DriveFailed || !strings.Contains(d.Finding, "2 times in a row") {
		t.Errorf("twice: %+v", d)
	}
	if d := b.Round([]sample.Drive{disk("sda", nil)}, noon.Add(30*time.Minute))[0]; d.Status != sample.DriveOK {
		t.Errorf("again: %+v", d)
	}
	if d := b.Round(silent, noon.Add(40*time.Minute))[0]; d.Status != sample.DriveUnread {
		t.Errorf("later: %+v", d)
	}
}

func TestGrowth(t *testing.T) {
	b := book(t, "", "boot")
	monday := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	count := func(at time.Time, n float64) sample.Drive {
		return b.Round([]sample.Drive{disk("sda", counts{sample.DriveReallocated: n})}, at)[0]
	}
	for d := -40; d <= 0; d++ {
		if got := count(monday.AddDate(0, 0, d), 272); got.Status != sample.DriveDegraded {
			t.Fatalf("%d: %+v", d, got)
		}
	}
	count(monday.Add(36*time.Hour), 290)
	want := "sda has 312 reallocated sectors, 40 of them since Monday (13 a day)."
	if got := count(monday.Add(75*time.Hour), 312); got.Finding != want || got.Status != sample.DriveFailing {
		t.Errorf("%q, want %q", got.Finding, want)
	}
	// A week after the last one it is a drive that has lost sectors once.
	for d := range 12 {
		count(monday.Add(75*time.Hour).AddDate(0, 0, d), 312)
	}
	if got := count(monday.AddDate(0, 0, 20), 312); got.Status != sample.DriveDegraded {
		t.Errorf("%+v", got)
	}
	// A count that falls, as of a drive that was erased, is no growth, and grows from there.
	if got := count(monday.AddDate(0, 0, 21), 5); got.Status != sample.DriveDegraded {
		t.Errorf("%+v", got)
	}
	if got := count(monday.AddDate(0, 0, 21).Add(time.Hour), 6); got.Status != sample.DriveFailing || !strings.Contains(got.Finding, "1 of them since 09:00") {
		t.Errorf("%+v", got)
	}
}

// Growth within the first day, and the first hour, is seen.
func TestGrowthOfAnHour(t *testing.T) {
	b := book(t, "", "boot")
	for i := range 20 {
		got := b.Round([]sample.Drive{disk("sda", counts{sample.DrivePending: float64(i)})}, noon.Add(time.Duration(i)*10*time.Minute))[0]
		if want := i > 0; (got.Status == sample.DriveFailing) != want {
			t.Errorf("after %d rounds: %+v", i, got)
		}
	}
}

// Five years of rounds leave a bounded file, and it is what was written.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drives.json")
	b := Open("", "boot", func(err error) { t.Error(err) })
	for i := range 5 * 365 {
		for h := range 3 {
			b.Round([]sample.Drive{disk("sda", counts{sample.DriveReallocated: float64(i)})}, noon.AddDate(0, 0, i).Add(time.Duration(h)*time.Hour))
		}
	}
	if n := len(b.known["naa.sda"].Counts); n > (Kept+1)*mostDay {
		t.Errorf("%d counts", n)
	}
	for i := range 2 * MostDrives {
		d := disk("sda", nil)
		d.ID, d.Serial = "id"+strings.Repeat("x", i), strings.Repeat("x", i)
		b.Round([]sample.Drive{d}, noon.AddDate(5, 0, 0).Add(time.Duration(i)*time.Second))
	}
	if n := len(b.known); n != MostDrives {
		t.Errorf("%d drives", n)
	}
	if err := write(path, b.known); err != nil {
		t.Fatal(err)
	}
	again, err := read(path)
	if err != nil || len(again) != len(b.known) {
		t.Errorf("%d of %d, %v", len(again), len(b.known), err)
	}
}

func TestDamaged(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "drives.json")
	book(t, path, "boot").Round([]sample.Drive{disk("sda", nil)}, noon)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cut": string(whole[:len(whole)/2]), "changed": strings.Replace(string(whole), "Model sda", "Model sdb", 1), "empty": "", "other": "hello\n",
		"newer": strings.Replace(string(whole), heading+" 1 ", heading+" 2 ", 1), "null": heading + " 1 00000000\nnull",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, ""); err == nil {
			t.Errorf("%s: no error", name)
		}
		var told []error
		b := Open(path, "boot", func(err error) { told = append(told, err) })
		all := b.Round([]sample.Drive{disk("sda", nil)}, noon)
		if len(told) != 1 || len(all) != 1 || !strings.Contains(told[0].Error(), "It is kept as ") || strings.Contains(told[0].Error(), "\n") {
			t.Errorf("%s: %v", name, told)
		}
		if now, err := read(path); err != nil || len(now) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 7 {
		t.Errorf("set aside: %q", left)
	}
}

// A file that cannot be read now is not written over.
func TestUnreadable(t *testing.T) {
	path := t.TempDir() // a folder
	var told []error
	b := Open(path, "boot", func(err error) { told = append(told, err) })
	b.Round([]sample.Drive{disk("sda", nil)}, noon)
	if all := b.Round(nil, noon.Add(time.Minute)); len(told) != 1 || len(all) != 1 {
		t.Errorf("%v, %+v", told, all)
	}
}

// Whatever is in the file, reading it returns.
func FuzzParse(f *testing.F) {
	text, err := format(map[string]*Record{"naa.sda": {Drive: disk("sda", nil), First: noon, Seen: noon, Counts: []Counts{{noon, []int64{1, -1}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, int64(3))
	f.Fuzz(func(t *testing.T, text []byte, now int64) {
		known, err := parse(text)
		if err != nil {
			return
		}
		b := &Book{boot: "boot", known: known, tell: func(error) {}}
		d := disk("sda", counts{sample.DriveReallocated: float64(now)})
		for _, got := range b.Round([]sample.Drive{d}, noon) {
			if got.Status == "" {
				t.Errorf("not judged: %+v", got)
			}
		}
	})
}

func TestNilBook(t *testing.T) {
	var b *Book
	if all := b.Round([]sample.Drive{disk("sda", nil)}, noon); len(all) != 1 || all[0].Status != sample.DriveOK {
		t.Errorf("%+v", all)
	}
}
