package smart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// fake is a /sys with disks, and a smartctl that prints a given output for each.
type fake struct {
	t      testing.TB
	root   string
	folder string // of smartctl
}

func newFake(t testing.TB) *fake {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("needs /bin/sh to play smartctl: %v", err)
	}
	f := &fake{t, t.TempDir(), t.TempDir()}
	fixture.Write(t, f.root, "sys/class/block/loop0/size", []byte("0\n"))
	f.script("smartctl", `#!/bin/sh
cd "${0%/*}" || exit 125
for last; do :; done
name=${last##*/}
echo "$*" > "$name.called"
[ -f "$name.sh" ] && . "./$name.sh"
cat "$name.json"
exit 0
`)
	return f
}

func (f *fake) script(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), []byte(text), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

// disk adds a disk for which smartctl runs a script and then prints a text.
func (f *fake) disk(name, json, script string) {
	f.t.Helper()
	fixture.Write(f.t, f.root, "sys/class/block/"+name+"/device/type", []byte("0\n"))
	f.script(name+".json", json)
	if script != "" {
		f.script(name+".sh", script)
	}
}

func (f *fake) options() Options {
	return Options{Root: f.root, Smartctl: filepath.Join(f.folder, "smartctl"), Timeout: time.Minute}
}

func (f *fake) round(o Options) map[string]sample.Drive {
	f.t.Helper()
	s, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	drives, _ := s.Round(f.t.Context())
	all := map[string]sample.Drive{}
	for _, d := range drives {
		all[d.Device+d.Type] = d
	}
	if len(all) != len(drives) {
		f.t.Errorf("got %d drives with %d names, want different names", len(drives), len(all))
	}
	return all
}

func (f *fake) called(name string) string {
	text, _ := os.ReadFile(filepath.Join(f.folder, name+".called"))
	return strings.TrimSpace(string(text))
}

func TestRound(t *testing.T) {
	f := newFake(t)
	wdc := string(load(t, "ata-wdc-red"))
	f.disk("sda", wdc, "")
	f.disk("sdaa", string(load(t, "refused-megaraid")), "")
	f.disk("sdb", string(load(t, "asleep")), "")
	f.disk("nvme0n1", string(load(t, "nvme-crucial")), "")
	fixture.Write(t, f.root, "sys/class/block/nvme0n1/wwid", []byte("eui.00a0750100000001\n"))
	all := f.round(f.options())
	if len(all) != 4 {
		t.Errorf("got %d drives %v, want sda, sdb and sdaa", len(all), all)
	}
	if d := all["sda"]; d.Status != "" || d.Model != "WDC WD20EFRX-68EUZN0" || d.At.IsZero() ||
		d.ID != "naa.50014ee0499602d2" {
		t.Errorf("got %+v, want sda with its model and WWN", d)
	}
	if d := all["nvme0n1"]; d.ID != "eui.00a0750100000001" || d.Protocol != "NVMe" {
		t.Errorf("got %+v, want the kernel's ID", d)
	}
	if d := all["sdb"]; d.Status != sample.DriveAsleep || d.Err != "" {
		t.Errorf("got %+v, want sdb asleep", d)
	}
	if d := all["sdaa"]; d.Status != sample.DriveUnread || !strings.Contains(d.Err, "megaraid,0") ||
		!strings.Contains(d.Err, "/dev/sdaa") {
		t.Errorf("got %+v, want sdaa unread with a hint about megaraid", d)
	}
	want := "--json --nocheck=standby --info --health --attributes --log=error --log=ssd /dev/sda"
	if got := f.called("sda"); got != want {
		t.Errorf("got arguments %q, want %q", got, want)
	}
}

// Devices without hardware of their own are left out, and suspended disks are not opened.
func TestTargets(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{
		"vda", "xvda", "zram0", "ram0", "dm-0", "md0", "nbd0", "sr0", "mmcblk0", "rbd0", "sda", "nvme0c0n1", "nvme0n1",
	} {
		f.disk(name, "{}", "")
	}
	f.disk("sda1", "{}", "")
	fixture.Write(t, f.root, "sys/class/block/sda1/partition", []byte("1\n"))
	f.disk("sdb", "{}", "")
	fixture.Write(t, f.root, "sys/class/block/sdb/device/vendor", []byte("QEMU    \n"))
	f.disk("sdc", "{}", "")
	fixture.Write(t, f.root, "sys/class/block/sdc/removable", []byte("1\n"))
	fixture.Write(t, f.root, "sys/class/block/sdc/size", []byte("0\n"))
	f.disk("sdd", "{}", "")
	fixture.Write(t, f.root, "sys/class/block/sdd/device/type", []byte("13\n"))
	f.disk("sde", "{}", "")
	fixture.Write(t, f.root, "sys/class/block/sde/device/power/runtime_status", []byte("suspended\n"))
	all := f.round(f.options())
	if len(all) != 3 || all["sde"].Status != sample.DriveAsleep || f.called("sde") != "" {
		t.Errorf("got %+v, want the disks with hardware only", all)
	}
	if _, present := all["sda"]; !present {
		t.Error("got no sda, want it unread")
	}
}

func TestConfig(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "refused-megaraid")), "")
	f.disk("sdb", string(load(t, "ata-wdc-red")), "")
	o := f.options()
	o.Disks = []Disk{
		{Device: "/dev/sda", Type: "sat+megaraid,0"}, {Device: "/dev/sda", Type: "megaraid,1"}, {Device: "/dev/sdb", Off: true},
	}
	all := f.round(o)
	if len(all) != 2 || all["sdasat+megaraid,0"].Device != "sda" || all["sdamegaraid,1"].Type != "megaraid,1" {
		t.Errorf("got %+v, want the configured disks", all)
	}
	if got := f.called("sda"); !strings.Contains(got, "--log=ssd --device=") {
		t.Errorf("got arguments %q, want the configured types", got)
	}
	if f.called("sdb") != "" {
		t.Error("got a call for a disk that is off, want none")
	}
	o.Disks, o.Only = []Disk{{Device: "/dev/sdb"}}, true
	if all := f.round(o); len(all) != 1 || all["sdb"].Status != "" {
		t.Errorf("Only: got %+v, want sdb", all)
	}
}

// A device or type that could be another argument or file is an error before a program is started.
func TestMaliciousNames(t *testing.T) {
	for _, d := range []Disk{
		{Device: ""}, {Device: "sda"}, {Device: "/dev/"}, {Device: "/dev/../etc/passwd"}, {Device: "/dev/sda; reboot"},
		{Device: "/dev/$(reboot)"}, {Device: "/dev/-s"}, {Device: "/dev/sda\n"}, {Device: "/dev/sd\x00a"}, {Device: "/etc/passwd"},
		{Device: "/dev//sda"}, {Device: "/dev/sda/"}, {Device: "/dev/" + strings.Repeat("a", 4096)},
		{Device: "/dev/sda", Type: "sat --smart=off"}, {Device: "/dev/sda", Type: "-x"}, {Device: "/dev/sda", Type: "sat\n"},
		{Device: "/dev/sda", Type: "`reboot`"}, {Device: "/dev/sda", Type: strings.Repeat("a", 4096)},
	} {
		_, err := New(Options{Disks: []Disk{d}})
		if err == nil || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 400 {
			t.Errorf("%.60q, %.60q: got error %v, want one", d.Device, d.Type, err)
		}
	}
	for _, d := range []Disk{
		{Device: "/dev/sda"}, {Device: "/dev/nvme0n1", Type: "nvme"}, {Device: "/dev/bus/0", Type: "sat+megaraid,3"}, {Device: "/dev/sda", Type: "areca,1/2"},
		{Device: "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"}, {Device: "/dev/disk/by-path/pci-0000:00:17.0-ata-1"},
	} {
		if err := d.Check(); err != nil {
			t.Errorf("%v: got error %v, want none", d, err)
		}
	}
}

func FuzzDisk(f *testing.F) {
	f.Add("/dev/sda", "sat+megaraid,3")
	f.Add("/dev/../etc/passwd", "-x")
	f.Fuzz(func(t *testing.T, device, kind string) {
		if (Disk{Device: device, Type: kind}).Check() != nil {
			return
		}
		list := (&target{path: device, kind: kind}).arguments()
		if last := list[len(list)-1]; !strings.HasPrefix(last, "/dev/") || filepath.Clean(last) != last {
			t.Errorf("got device %q, want a path below /dev", last)
		}
		if strings.ContainsAny(strings.Join(list, ""), " \t\n\x00;$`'\"\\|&<>*?(){}!~#%") {
			t.Errorf("got arguments %q, want none that is a device or type by mistake", list)
		}
	})
}

// Four of 24 smartctl hang without delaying the others. Each waits for the other three before it hangs.
func TestHanging(t *testing.T) {
	f := newFake(t)
	wdc := string(load(t, "ata-wdc-red"))
	for i := range 24 {
		script := ""
		if i%6 == 0 {
			script = fmt.Sprintf(`trap '' TERM HUP INT
: > hangs.%d
until [ -f hangs.0 ] && [ -f hangs.6 ] && [ -f hangs.12 ] && [ -f hangs.18 ]; do sleep 0.01; done
: > together
while :; do sleep 100; done
`, i)
		}
		f.disk("sd"+string(rune('a'+i)), wdc, script)
	}
	o := f.options()
	o.Timeout = 5 * time.Second
	all := f.round(o)
	noResponse := 0
	for name, d := range all {
		hangs := slices.Contains([]string{"sda", "sdg", "sdm", "sds"}, name)
		if d.Silent != hangs || hangs != strings.Contains(d.Err, "has not ended within 5s") {
			t.Errorf("%s: got silent %v, error %q", name, d.Silent, d.Err)
		}
		if d.Silent {
			noResponse++
		}
	}
	if _, err := os.Stat(filepath.Join(f.folder, "together")); err != nil || noResponse != 4 || len(all) != 24 {
		t.Errorf("got %d of %d silent, error %v, want 4 of 24", noResponse, len(all), err)
	}
}

func TestMisbehaving(t *testing.T) {
	f := newFake(t)
	wdc := string(load(t, "ata-wdc-red"))
	f.disk("sda", "", "trap '' PIPE TERM\n"+
		"while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n")
	f.disk("sdb", wdc, "sleep 300 &\n") // holds the pipe
	f.disk("sdc", "", "exit 3\n")
	f.disk("sdd", "", "echo no such library >&2; exit 127\n")
	f.disk("sde", "\x00\x01\x02", "")
	f.disk("sdf", `{"smartctl": {"version": [7,`, "")
	f.disk("sdg", wdc, "while :; do echo noise >&2; i=x$i; [ ${#i} -gt 20000 ] && break; done\n")
	f.disk("sdh", "smartctl 6.6 2016-05-31 r4324\n=======> UNRECOGNIZED OPTION: json\n", "")
	f.disk("sdi", "", "kill -9 $$\n")
	all := f.round(f.options())
	for name, want := range map[string]string{
		"sda": "more than 4 MiB", "sdb": "", "sdc": "printed nothing, and ended with exit status 3", "sdd": "no such library", "sde": "not smartctl's JSON",
		"sdf": "incomplete or invalid JSON", "sdg": "", "sdh": "older than 7.0", "sdi": "killed",
	} {
		d := all[name]
		if want == "" && (d.Err != "" || d.Model == "") || !strings.Contains(d.Err, want) {
			t.Errorf("%s: got error %q, want %q", name, d.Err, want)
		}
		if strings.ContainsAny(d.Err, "\n\x00") || len(d.Err) > 400 {
			t.Errorf("%s: got error %q, want one line", name, d.Err)
		}
	}
}

// While a smartctl has not ended, the next round does not start another for its disk.
func TestOneEach(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "ata-wdc-red")), "")
	s, err := New(f.options())
	if err != nil {
		t.Fatal(err)
	}
	s.running.Store("/dev/sda ", time.Now())
	drives, err := s.Round(t.Context())
	if len(drives) != 1 || !drives[0].Silent || err == nil ||
		!strings.Contains(err.Error(), "cannot be killed") || f.called("sda") != "" {
		t.Errorf("hangs: got %+v, %v, want a silent drive", drives, err)
	}
	s.running.Delete("/dev/sda ")
	if drives, err := s.Round(t.Context()); err != nil || drives[0].Status != "" {
		t.Errorf("ended: got %+v, %v, want a drive that was read", drives, err)
	}
}

func TestMissing(t *testing.T) {
	f := newFake(t)
	f.disk("sda", "", "")
	t.Setenv("PATH", t.TempDir())
	if path, err := findSmartctl("", []string{t.TempDir()}); !errors.Is(err, ErrMissing) {
		t.Errorf("got path %q, error %v", path, err)
	}
	if path, err := findSmartctl("", []string{t.TempDir(), f.folder}); err != nil || path != f.folder+"/smartctl" {
		t.Errorf("got path %q, error %v", path, err)
	}
	o := f.options()
	o.Smartctl = "/nowhere/smartctl"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	drives, err := s.Round(t.Context())
	if !errors.Is(err, ErrMissing) || len(drives) != 1 || drives[0].Status != sample.DriveUnread {
		t.Errorf("got %+v, %v, want an unread drive and ErrMissing", drives, err)
	}
}

func TestRun(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "ata-wdc-red")), "")
	f.disk("sdb", "", "while :; do sleep 100; done\n")
	o := f.options()
	o.Every, o.Timeout = 10*time.Millisecond, 500*time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	s.Run(ctx, func(source string, got *sample.Sample, err error) {
		if source != "smart" || len(got.Drives) != 2 || got.At.Wall.IsZero() || err == nil ||
			!strings.HasPrefix(err.Error(), "sdb: ") {
			t.Errorf("got %+v, %v from %s, want two drives and the error of sdb", got, err, source)
		}
		if rounds++; rounds == 2 {
			cancel()
		}
	})
	if rounds != 2 {
		t.Errorf("got %d rounds, want more", rounds)
	}
}

// A round that is cancelled kills its smartctl.
func TestEnded(t *testing.T) {
	f := newFake(t)
	f.disk("sda", "", ": > begun\nwhile :; do sleep 100; done\n")
	s, err := New(f.options())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(f.folder, "begun")); err == nil || t.Context().Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, _ = s.Round(ctx)
	for disk := range s.running.Range {
		t.Errorf("got %v still running, want none", disk)
	}
}

// Without permission the error has the sudoers line for this command, or what root lacks.
func TestNotPermitted(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "refused-permission-rawio")), "")
	d := f.round(f.options())["sda"]
	want := "root has not got it here"
	if os.Geteuid() != 0 {
		want = "a smartctl that only root may replace" // this one is the user's
	}
	if !strings.Contains(d.Err, want) || !strings.Contains(d.Err, "CAP_SYS_RAWIO") {
		t.Errorf("got error %q, want %q", d.Err, want)
	}
}

func TestSudoers(t *testing.T) {
	got := Sudoers("stallspan", "/usr/sbin/smartctl", Disk{Device: "/dev/sda", Type: "sat+megaraid,3"})
	want := `stallspan ALL=(root) NOPASSWD: /usr/sbin/smartctl --json --nocheck\=standby --info --health --attributes ` +
		`--log\=error --log\=ssd --device\=sat+megaraid\,3 /dev/sda`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The real smartctl accepts the arguments, and fails at the device.
func TestRealSmartctl(t *testing.T) {
	path, err := findSmartctl("", defaultFolders)
	if err != nil {
		t.Skipf("needs smartctl: %v", err)
	}
	for _, kind := range []string{"", "sat", "megaraid,0", "nvme", "scsi"} {
		s := &Source{options: Options{Timeout: time.Minute}}
		d := s.run(t.Context(), path, &target{name: "stallspan-no-such", path: "/dev/stallspan-no-such", kind: kind})
		if d.Status != sample.DriveUnread || strings.Contains(d.Err, "older than") ||
			strings.Contains(strings.ToLower(d.Err), "option") {
			t.Errorf("type %q: got %+v, want an unread drive without an error about options", kind, d)
		}
		t.Logf("type %q: %s", kind, d.Err)
	}
	if text, err := exec.Command(path, "--version").Output(); err == nil {
		t.Logf("%s", strings.SplitN(string(text), "\n", 2)[0])
	}
}
