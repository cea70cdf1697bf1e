package disk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func source(t testing.TB, root string) *Source {
	t.Helper()
	s, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func read(t testing.TB, s *Source) []sample.Disk {
	t.Helper()
	var out sample.Sample
	if err := s.Read(&out); err != nil {
		t.Fatal(err)
	}
	return out.Disks
}

func leaves(disks []sample.Disk) []string {
	var names []string
	for _, d := range disks {
		if d.Leaf {
			names = append(names, d.Name)
		}
	}
	return names
}

// layers lists the layers as "name" or "name: devices below".
func layers(disks []sample.Disk) (list []string) {
	for _, d := range disks {
		switch {
		case d.Layer && d.On != "":
			list = append(list, d.Name+": "+d.On)
		case d.Layer:
			list = append(list, d.Name)
		}
	}
	return list
}

// A layer lies on whole devices, also where its parts are partitions. Unused loop devices and zram are not layers.
func TestLayers(t *testing.T) {
	for name, want := range map[string][]string{
		"disk_laptop": {"loop0: dm-1", "loop1: dm-1", "loop2: dm-1", "loop3: dm-1", "dm-0: nvme0n1", "dm-1: dm-0", "dm-2: dm-0"},
		"disk_server": {"md0: sda sdb", "dm-0: sdc sdd"},
		"disk_vm":     nil,
	} {
		root := fixture.Root(t, name)
		if got := layers(read(t, source(t, root))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if err := os.RemoveAll(filepath.Join(root, "sys")); err != nil {
			t.Fatal(err)
		}
		s := source(t, root)
		byName := &sample.Sample{}
		_ = s.Read(byName) // it reports that /sys is missing
		for i, d := range byName.Disks {
			if stackedByName := stacked(d.Name) && d.Name != "zram0"; d.Layer != stackedByName || d.On != "" {
				t.Errorf("%s without /sys, device %d, %s: got layer %v on %q, want %v on nothing known", name, i, d.Name,
					d.Layer, d.On, stackedByName)
			}
		}
	}
}

func TestLeaves(t *testing.T) {
	tests := []struct {
		fixture string
		devices int
		leaves  []string
	}{
		{"disk_laptop", 15, []string{"nvme0n1", "sda"}},
		// Linux 5.15 counts NVMe multipath on the hidden paths, so these replace nvme0n1.
		{
			"disk_server",
			16,
			[]string{"sda", "sdb", "sdc", "sdd", "sde", "sdf", "sdg", "sdh", "nvme0c0n1", "nvme0c1n1", "sr0"},
		},
		{"disk_vm", 10, []string{"vda"}},
	}
	for _, test := range tests {
		t.Run(test.fixture, func(t *testing.T) {
			disks := read(t, source(t, fixture.Root(t, test.fixture)))
			if len(disks) != test.devices {
				t.Errorf("got %d devices, want %d", len(disks), test.devices)
			}
			if got := leaves(disks); !slices.Equal(got, test.leaves) {
				t.Errorf("leaves\ngot  %v\nwant %v", got, test.leaves)
			}
		})
	}
}

func TestLeavesByName(t *testing.T) {
	for _, name := range []string{"disk_laptop", "disk_server", "disk_vm"} {
		t.Run(name, func(t *testing.T) {
			root := fixture.Root(t, name)
			want := read(t, source(t, root))
			if err := os.RemoveAll(filepath.Join(root, "sys")); err != nil {
				t.Fatal(err)
			}
			s := source(t, root)
			var out sample.Sample
			if err := s.Read(&out); err == nil || !strings.Contains(err.Error(), "by their names") {
				t.Errorf("without /sys: got error %v, want one", err)
			}
			if got := leaves(out.Disks); !slices.Equal(got, leaves(want)) {
				t.Errorf("got %v, want %v", got, leaves(want))
			}
			// Reported once, also if the set of devices changes.
			out.Reset()
			if err := s.Read(&out); err != nil {
				t.Error(err)
			}
			fixture.Write(t, root, "proc/diskstats", []byte("8 0 sdz 1 1 1 1 1 1 1 1 0 1 1\n"))
			if got := leaves(read(t, s)); !slices.Equal(got, []string{"sdz"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Newer kernels count on nvme0n1 and on its paths.
func TestMultipathCountsOnDisk(t *testing.T) {
	root := fixture.Root(t, "disk_server")
	s := source(t, root)
	if got := leaves(read(t, s)); slices.Contains(got, "nvme0n1") {
		t.Errorf("got %v", got)
	}
	text, err := os.ReadFile(filepath.Join(root, "proc/diskstats"))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "proc/diskstats", []byte(strings.Replace(string(text), "nvme0n1 0 ", "nvme0n1 7 ", 1)))
	got := leaves(read(t, s))
	if !slices.Contains(got, "nvme0n1") || slices.Contains(got, "nvme0c0n1") || slices.Contains(got, "nvme0c1n1") {
		t.Errorf("got %v", got)
	}
}

// Of two devices with one name only the first counts, from one reading to the next.
func TestNameTwice(t *testing.T) {
	root := t.TempDir()
	const line = "8 0 sda 5 0 8 1 0 0 0 0 0 1 1\n"
	fixture.Write(t, root, "proc/diskstats", []byte(line+line))
	s := source(t, root)
	var first, second sample.Sample
	_, _ = s.Read(&first), s.Read(&second) // without /sys: they return an error once
	if got := leaves(second.Disks); !slices.Equal(got, []string{"sda"}) {
		t.Fatalf("got the leaves %v, want one", got)
	}
	for i := range second.Disks {
		if d := &second.Disks[i]; d.Leaf && !d.Continues(&first.Disks[i]) {
			t.Errorf("the leaf, device %d: got a restart at %v, want none", i, d.Reset.Mono)
		}
	}
}

func TestOldKernel(t *testing.T) {
	root := fixture.Root(t, "disk_server")
	old, err := os.ReadFile(filepath.Join(root, "proc/diskstats-4.14"))
	if err != nil {
		t.Fatal(err)
	}
	now := read(t, source(t, root))
	fixture.Write(t, root, "proc/diskstats", old)
	s := source(t, root)
	for _, d := range read(t, s) {
		i := slices.IndexFunc(now, func(other sample.Disk) bool { return other.Name == d.Name })
		want := sample.Disk{
			Name:        d.Name,
			Leaf:        d.Leaf,
			Layer:       d.Layer,
			On:          d.On,
			ReadIOs:     now[i].ReadIOs,
			ReadMerges:  now[i].ReadMerges,
			ReadBytes:   now[i].ReadBytes,
			ReadTicks:   now[i].ReadTicks,
			WriteIOs:    now[i].WriteIOs,
			WriteMerges: now[i].WriteMerges,
			WriteBytes:  now[i].WriteBytes,
			WriteTicks:  now[i].WriteTicks,
			InFlight:    now[i].InFlight,
			IOTicks:     now[i].IOTicks,
			TimeInQueue: now[i].TimeInQueue,
		}
		if d != want {
			t.Errorf("got  %+v\nwant %+v", d, want)
		}
	}
}

func TestStampIsWithinReading(t *testing.T) {
	s := source(t, fixture.Root(t, "disk_vm"))
	var out sample.Sample
	before := sample.Now()
	err := s.Read(&out)
	after := sample.Now()
	if err != nil || out.At.Mono < before.Mono || out.At.Mono > after.Mono || out.At.Wall.Before(before.Wall) {
		t.Errorf("got stamp %v, %v; want one between %v and %v", out.At, err, before, after)
	}
}

func TestBadLinesAreLeftOut(t *testing.T) {
	root := fixture.Root(t, "disk_vm")
	good := " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n"
	fixture.Write(t, root, "proc/diskstats", []byte("total nonsense "+strings.Repeat("x", 5000)+"\n"+good+"\x00\xff\n"))
	s := source(t, root)
	var out sample.Sample
	err := s.Read(&out)
	if len(out.Disks) != 1 || out.Disks[0].TimeInQueue != 11*time.Millisecond || !out.Disks[0].Leaf {
		t.Errorf("got %+v", out.Disks)
	}
	if err == nil || !strings.Contains(err.Error(), "2 line(s)") ||
		!strings.Contains(err.Error(), `line 1: "total nonsense x`) ||
		len(err.Error()) > 250 {
		t.Errorf("error %v", err)
	}
	// The same line with other counters is the same problem.
	var texts [2]string
	for i := range texts {
		fixture.Write(t, root, "proc/diskstats", fmt.Appendf(nil, "%s 8 0 sda %d 2 3\n", good, 7*i))
		if err := s.Read(&out); err != nil {
			texts[i] = err.Error()
		}
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], `"8 0 sda"`) {
		t.Errorf("got %q, want one problem that names the device", texts)
	}
}

func TestFileIsMissingForAWhile(t *testing.T) {
	root := fixture.Root(t, "disk_vm")
	s := source(t, root)
	if got := read(t, s); len(got) != 10 {
		t.Errorf("got %d devices", len(got))
	}
	path := filepath.Join(root, "proc/diskstats")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out sample.Sample
		if err := s.Read(&out); err == nil || len(out.Disks) != 0 || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %d devices, %v", len(out.Disks), err)
		}
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if got := leaves(read(t, s)); !slices.Equal(got, []string{"vda"}) {
		t.Errorf("got %v", got)
	}
}

func TestNewWithoutDiskstats(t *testing.T) {
	if s, err := New(t.TempDir()); err == nil || s != nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, %v", s, err)
	}
	// A folder in its place opens, but does not read.
	root := t.TempDir()
	fixture.Write(t, root, "proc/diskstats/x", nil)
	s := source(t, root)
	var out sample.Sample
	if err := s.Read(&out); err == nil {
		t.Error("a folder: got no error, want one")
	}
}

func TestReadingIsBounded(t *testing.T) {
	root := t.TempDir()
	line := "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n"
	fixture.Write(t, root, "proc/diskstats", []byte(strings.Repeat(line, maxText/len(line)+10)))
	s := source(t, root)
	var out sample.Sample
	if err := s.Read(&out); err == nil || !strings.Contains(err.Error(), "4 MiB") {
		t.Errorf("error %v", err)
	}
	if len(out.Disks) != maxText/len(line) || len(s.text) != maxText {
		t.Errorf("got %d devices in a buffer of %d bytes", len(out.Disks), len(s.text))
	}
}

var partition = regexp.MustCompile(`^(sd[a-z]\d+|nvme\d+n\d+p\d+)$`)

// machine writes a tree with one line and one folder in /sys for each device.
func machine(t testing.TB, root string, names []string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(root, "sys")); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i, name := range names {
		fmt.Fprintf(&text, "%4d %7d %s", 8+i/256, i%256, name)
		for column := range flushColumns {
			fmt.Fprintf(&text, " %d", 1_000_000_007*(i+1)*(column+1)%4_000_000_000)
		}
		text.WriteByte('\n')
		folder := "sys/class/block/" + strings.ReplaceAll(name, "/", "!") + "/"
		fixture.Write(t, root, folder+"dev", nil)
		if partition.MatchString(name) {
			fixture.Write(t, root, folder+"partition", []byte("1\n"))
		}
		if strings.HasPrefix(name, "dm-") {
			fixture.Write(t, root, folder+"slaves/sda", nil)
		}
	}
	fixture.Write(t, root, "proc/diskstats", []byte(text.String()))
}

func hundred() []string {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("nvme%dn1", i)
	}
	return names
}

func TestHundredDevices(t *testing.T) {
	root := t.TempDir()
	machine(t, root, hundred())
	if got := leaves(read(t, source(t, root))); !slices.Equal(got, hundred()) {
		t.Errorf("got %v", got)
	}
}

// After any change of devices, a reading equals that of a new source, and nothing of removed devices remains.
func TestDevicesComeAndGo(t *testing.T) {
	pool := []string{
		"sda",
		"sda1",
		"sdb",
		"sdb1",
		"sdb2",
		"nvme0n1",
		"nvme0n1p1",
		"nvme1n1",
		"dm-0",
		"dm-1",
		"loop0",
		"zram0",
		"cciss/c0d0",
		"xvda1",
	}
	isLeaf := map[string]bool{
		"sda":        true,
		"sdb":        true,
		"nvme0n1":    true,
		"nvme1n1":    true,
		"cciss/c0d0": true,
		"xvda1":      true,
	}
	root := t.TempDir()
	machine(t, root, nil)
	s := source(t, root)
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 150 {
		var present, want []string
		for _, name := range pool {
			if random.IntN(3) > 0 {
				present = append(present, name)
			}
		}
		if step%3 == 0 { // the order is not stable
			random.Shuffle(len(present), func(i, j int) { present[i], present[j] = present[j], present[i] })
		}
		for _, name := range present {
			if isLeaf[name] {
				want = append(want, name)
			}
		}
		machine(t, root, present)
		got := read(t, s)
		for i := range got {
			got[i].Reset, got[i].Has = sample.Stamp{}, got[i].Has&^sample.BusyTooLong // a new source has no earlier counters
		}
		if fresh := read(t, source(t, root)); !slices.Equal(got, fresh) {
			t.Fatalf("step %d: got %+v, want %+v as from a new source", step, got, fresh)
		}
		if !slices.Equal(leaves(got), want) {
			t.Fatalf("step %d: got leaves %v, want %v", step, leaves(got), want)
		}
		if !slices.Equal(s.known, present) {
			t.Fatalf("step %d: %v are kept of %v", step, s.known, present)
		}
	}
}

func TestDuplicateNameCountsOnce(t *testing.T) {
	root := t.TempDir()
	machine(t, root, []string{"sda", "sdb", "sda"})
	s := source(t, root)
	for range 2 {
		if got := leaves(read(t, s)); len(got) != 2 {
			t.Errorf("got %v", got)
		}
	}
}

// A reading allocates the path alone.
func TestReadAllocatesLittle(t *testing.T) {
	for _, names := range [][]string{hundred()[:10], hundred()} {
		root := t.TempDir()
		machine(t, root, names)
		s := source(t, root)
		var out sample.Sample
		tick := func() {
			out.Reset()
			if err := s.Read(&out); err != nil || len(out.Disks) != len(names) {
				t.Fatalf("got %d disks, %v; want %d", len(out.Disks), err, len(names))
			}
		}
		tick()
		if got := testing.AllocsPerRun(20, tick); got > 1 {
			t.Errorf("%d devices: got %v allocations, want one at most", len(names), got)
		}
	}
}

func TestThisMachineNeverDecreases(t *testing.T) {
	s, err := New("/")
	if err != nil {
		t.Skip("no disk counters:", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	first := read(t, s)
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	second := read(t, s)
	for _, b := range second {
		i := slices.IndexFunc(first, func(a sample.Disk) bool { return a.Name == b.Name })
		if i < 0 {
			continue // added meanwhile
		}
		a := first[i]
		if b.ReadIOs < a.ReadIOs || b.ReadBytes < a.ReadBytes || b.WriteIOs < a.WriteIOs || b.WriteBytes < a.WriteBytes ||
			b.DiscardIOs < a.DiscardIOs || b.FlushIOs < a.FlushIOs {
			t.Errorf("got counters\n%+v after\n%+v, want none that decreased", b, a)
		}
	}
}
