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

	"github.com/stallspan/stallspan/internal/fixture"
	"github.com/stallspan/stallspan/internal/sample"
)

// fake is a machine of a test's own: a /sys with disks, and a smartctl that says of each disk what the test wants.
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

// disk adds a disk whose smartctl prints a text, after it has done what a script says.
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
		f.t.Errorf("%d drives of %d names", len(drives), len(all))
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
		t.Errorf("%d drives", len(all))
	}
	if d := all["sda"]; d.Status != "" || d.Model != "WDC WD20EFRX-68EUZN0" || d.At.IsZero() || d.ID != "naa.50014ee0499602d2" {
		t.Errorf("sda: %+v", d)
	}
	if d := all["nvme0n1"]; d.ID != "eui.00a0750100000001" || d.Protocol != "NVMe" {
		t.Errorf("the kernel's word on what it is goes first: %+v", d)
	}
	if d := all["sdb"]; d.Status != sample.DriveAsleep || d.Err != "" {
		t.Errorf("sdb: %+v", d)
	}
	if d := all["sdaa"]; d.Status != sample.DriveUnread || !strings.Contains(d.Err, "megaraid,0") || !strings.Contains(d.Err, "/dev/sdaa") {
		t.Errorf("sdaa: %+v", d)
	}
	want := "--json --nocheck=standby --info --health --attributes --log=error --log=ssd /dev/sda"
	if got := f.called("sda"); got != want {
		t.Errorf("smartctl was called with %q, want %q", got, want)
	}
}

// What is no disk with hardware of its own is passed over, and what the kernel has suspended is not even opened.
func TestTargets(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"vda", "xvda", "zram0", "ram0", "dm-0", "md0", "nbd0", "sr0", "mmcblk0", "rbd0", "sda", "nvme0c0n1", "nvme0n1"} {
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
		t.Errorf("%+v", all)
	}
	if _, there := all["sda"]; !there {
		t.Error("sda is missing")
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
		t.Errorf("%+v", all)
	}
	if got := f.called("sda"); !strings.Contains(got, "--log=ssd --device=") {
		t.Errorf("smartctl was called with %q", got)
	}
	if f.called("sdb") != "" {
		t.Error("a disk that is off was asked")
	}
	o.Disks, o.Only = []Disk{{Device: "/dev/sdb"}}, true
	if all := f.round(o); len(all) != 1 || all["sdb"].Status != "" {
		t.Errorf("only sdb: %+v", all)
	}
}

// A name or type that could be taken for anything else is refused before a program is started.
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
			t.Errorf("%.60q, %.60q: %v", d.Device, d.Type, err)
		}
	}
	for _, d := range []Disk{
		{Device: "/dev/sda"}, {Device: "/dev/nvme0n1", Type: "nvme"}, {Device: "/dev/bus/0", Type: "sat+megaraid,3"}, {Device: "/dev/sda", Type: "areca,1/2"},
		{Device: "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"}, {Device: "/dev/disk/by-path/pci-0000:00:17.0-ata-1"},
	} {
		if err := d.Check(); err != nil {
			t.Errorf("%v: %v", d, err)
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
			t.Errorf("%q is asked", last)
		}
		if strings.ContainsAny(strings.Join(list, ""), " \t\n\x00;$`'\"\\|&<>*?(){}!~#%") {
			t.Errorf("%q", list)
		}
	})
}

// Four of 24 hang, and hold up nobody: each waits for the other three before it does.
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
	silent := 0
	for name, d := range all {
		hangs := slices.Contains([]string{"sda", "sdg", "sdm", "sds"}, name)
		if d.Silent != hangs || hangs != strings.Contains(d.Err, "has not ended within 5s") {
			t.Errorf("%s: silent %v, %q", name, d.Silent, d.Err)
		}
		if d.Silent {
			silent++
		}
	}
	if _, err := os.Stat(filepath.Join(f.folder, "together")); err != nil || silent != 4 || len(all) != 24 {
		t.Errorf("%d of %d are silent, at the same time: %v", silent, len(all), err)
	}
}

func TestMisbehaving(t *testing.T) {
	f := newFake(t)
	wdc := string(load(t, "ata-wdc-red"))
	f.disk("sda", "", "trap '' PIPE TERM\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n")
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
		"sdf": "not whole JSON", "sdg": "", "sdh": "older than 7.0", "sdi": "killed",
	} {
		d := all[name]
		if want == "" && (d.Err != "" || d.Model == "") || !strings.Contains(d.Err, want) {
			t.Errorf("%s: %q, want %q", name, d.Err, want)
		}
		if strings.ContainsAny(d.Err, "\n\x00") || len(d.Err) > 400 {
			t.Errorf("%s: not a line: %q", name, d.Err)
		}
	}
}

// A smartctl that has not ended, nor been killed, is left alone: the next round starts no other beside it.
func TestOneEach(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "ata-wdc-red")), "")
	s, err := New(f.options())
	if err != nil {
		t.Fatal(err)
	}
	s.begin("/dev/sda ")
	drives, err := s.Round(t.Context())
	if len(drives) != 1 || !drives[0].Silent || err == nil || !strings.Contains(err.Error(), "nor can it be killed") || f.called("sda") != "" {
		t.Errorf("%+v, %v", drives, err)
	}
	s.end("/dev/sda ")
	if drives, err := s.Round(t.Context()); err != nil || drives[0].Status != "" {
		t.Errorf("%+v, %v", drives, err)
	}
}

func TestMissing(t *testing.T) {
	f := newFake(t)
	f.disk("sda", "", "")
	t.Setenv("PATH", t.TempDir())
	if path, err := find("", []string{t.TempDir()}); !errors.Is(err, ErrMissing) {
		t.Errorf("%q, %v", path, err)
	}
	if path, err := find("", []string{t.TempDir(), f.folder}); err != nil || path != f.folder+"/smartctl" {
		t.Errorf("%q, %v", path, err)
	}
	o := f.options()
	o.Smartctl = "/nowhere/smartctl"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	drives, err := s.Round(t.Context())
	if !errors.Is(err, ErrMissing) || len(drives) != 1 || drives[0].Status != sample.DriveUnread {
		t.Errorf("%+v, %v", drives, err)
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
		if source != "smart" || len(got.Drives) != 2 || got.At.Wall.IsZero() || err == nil || !strings.HasPrefix(err.Error(), "sdb: ") {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
		if rounds++; rounds == 2 {
			cancel()
		}
	})
	if rounds != 2 {
		t.Errorf("%d rounds", rounds)
	}
}

// A round that is ended kills what it began.
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
	if len(s.asking) != 0 {
		t.Errorf("still asking: %v", s.asking)
	}
}

// Who may not ask is told the line that lets exactly this be asked, or what root lacks.
func TestNotPermitted(t *testing.T) {
	f := newFake(t)
	f.disk("sda", string(load(t, "refused-permission-rawio")), "")
	d := f.round(f.options())["sda"]
	want := "root has not got it here"
	if os.Geteuid() != 0 {
		want = "NOPASSWD: " + f.options().Smartctl + ` --json --nocheck\=standby`
	}
	if !strings.Contains(d.Err, want) || !strings.Contains(d.Err, "CAP_SYS_RAWIO") {
		t.Errorf("%q, want %q", d.Err, want)
	}
}

func TestSudoers(t *testing.T) {
	got := Sudoers("stallspan", "/usr/sbin/smartctl", Disk{Device: "/dev/sda", Type: "sat+megaraid,3"})
	want := `stallspan ALL=(root) NOPASSWD: /usr/sbin/smartctl --json --nocheck\=standby --info --health --attributes ` +
		`--log\=error --log\=ssd --device\=sat+megaraid\,3 /dev/sda`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The real smartctl understands the arguments: it gets as far as to the device.
func TestRealSmartctl(t *testing.T) {
	path, err := find("", usual)
	if err != nil {
		t.Skipf("needs smartctl: %v", err)
	}
	for _, kind := range []string{"", "sat", "megaraid,0", "nvme", "scsi"} {
		s := &Source{options: Options{Timeout: time.Minute}}
		d := s.ask(t.Context(), path, &target{name: "stallspan-no-such", path: "/dev/stallspan-no-such", kind: kind})
		if d.Status != sample.DriveUnread || strings.Contains(d.Err, "older than") || strings.Contains(strings.ToLower(d.Err), "option") {
			t.Errorf("type %q: %+v", kind, d)
		}
		t.Logf("type %q: %s", kind, d.Err)
	}
	if text, err := exec.Command(path, "--version").Output(); err == nil {
		t.Logf("%s", strings.SplitN(string(text), "\n", 2)[0])
	}
}
