package disk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// judged returns the difference of the last two of some readings of one device, a time apart.
func judged(t *testing.T, apart time.Duration, lines ...string) (sample.DiskDelta, bool) {
	t.Helper()
	var normalizer sample.DiskNormalizer
	var before, now sample.Disk
	for i, line := range lines {
		disks, bad := parse([]byte("259 0 x "+line+"\n"), nil, nil)
		if err := bad.err(); err != nil {
			t.Fatal(err)
		}
		s := sample.Sample{At: sample.Stamp{Mono: time.Hour + time.Duration(i)*apart}, Disks: disks}
		normalizer.Normalize(&s)
		before, now = now, s.Disks[0]
	}
	return now.Since(&before, apart)
}

// Each case has the values of /proc/diskstats of one kind of device or fault. A value that is not known is "-".
func TestImpossible(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string // a second apart
		want  string   // await of reads in us, queue, utilization in %
		lacks sample.Fields
	}{
		"an SSD": {[]string{
			"1000 0 8000 90 0 0 0 0 0 80 90 0 0 0 0 0 0", "1200 0 9600 290 0 0 0 0 0 180 290 0 0 0 0 0 0",
		}, "1000 0.20 10.0", 0},
		"a fast NVMe, few operations below the unit": {[]string{
			"1000 0 8000 90 0 0 0 0 0 80 90 0 0 0 0 0 0", "1010 0 8080 90 0 0 0 0 0 80 90 0 0 0 0 0 0",
		}, "0 0.00 0.0", 0},
		"idle": {[]string{
			"1000 0 8000 90 0 0 0 0 0 80 90 0 0 0 0 0 0", "1000 0 8000 90 0 0 0 0 0 80 90 0 0 0 0 0 0",
		}, "- 0.00 0.0", 0},
		"io_ticks of a newer kernel, 2 reads a second": {[]string{
			"1000 0 8000 90 0 0 0 0 0 500000 95", "1002 0 8016 91 0 0 0 0 0 501000 96",
		}, "500 0.00 0.1", sample.BusyTooLong},
		"the same while one is in flight at the reading": {[]string{
			"1000 0 8000 90 0 0 0 0 0 500000 95", "1002 0 8016 91 0 0 0 0 0 501000 96", "1004 0 8032 92 0 0 0 0 1 502000 97",
		}, "500 0.00 0.1", sample.BusyTooLong},
		"over 100 %": {[]string{
			"1000 0 8000 90 0 0 0 0 0 500000 95", "1002 0 8016 91 0 0 0 0 0 501400 96",
		}, "500 0.00 0.1", sample.BusyTooLong},
		"over 100 %, and a deep queue": {[]string{
			"1000 0 8000 90 0 0 0 0 0 5000 5000", "2000 0 8016 8090 0 0 0 0 0 6400 13000",
		}, "8000 8.00 -", sample.BusyTooLong},
		"a little over 100 %, by jiffies": {[]string{
			"1000 0 8000 90 0 0 0 0 0 5000 5000", "1100 0 8016 1090 0 0 0 0 0 6012 6000",
		}, "10000 1.00 100.0", 0},
		"an operation of 3 s that ends, and its io_ticks at once": {[]string{
			"1000 0 8000 90 0 0 0 0 1 80 90", "1001 0 8000 3090 0 0 0 0 0 3080 3090",
		}, "3000000 3.00 -", sample.BusyTooLong},
		"a disk that hangs": {[]string{
			"1000 0 8000 90 0 0 0 0 3 80 90", "1000 0 8000 90 0 0 0 0 4 1080 90",
		}, "- 3.00 100.0", 0},
		"times of lxcfs": {[]string{
			"41000 0 8400000 0 900 0 65000 0 0 0 0", "43000 0 8416000 0 900 0 65000 0 0 0 0",
		}, "- - -", sample.LacksReadTime | sample.LacksQueue | sample.LacksIOTicks},
		"times of lxcfs, few operations": {[]string{
			"41000 0 8400000 0 900 0 65000 0 0 0 0", "41003 0 8400024 0 900 0 65000 0 0 0 0",
		}, "- - -", sample.LacksReadTime | sample.LacksQueue | sample.LacksIOTicks},
		"times that stand still since some time": {[]string{
			"41000 0 8400000 700 0 0 0 0 0 300 700", "43000 0 8416000 700 0 0 0 0 0 300 700",
		}, "- - -", sample.LacksReadTime | sample.LacksQueue | sample.LacksIOTicks},
		"times of reads only": {[]string{
			"1000 0 8000 900 500 0 0 0 0 80 900 0 0 0 0", "1200 0 9600 1100 900 0 0 0 0 180 1100 0 0 0 0",
		}, "1000 - 10.0", sample.LacksWriteTime | sample.LacksQueue},
		"md before Linux 5.14": {[]string{
			"90000 0 720000 0 1000 0 8000 0 0 0 0 0 0 0 0", "90010 0 720080 0 1000 0 8000 0 0 0 0 0 0 0 0",
		}, "- - -", sample.LacksTimes | sample.LacksIOTicks},
		"dm or zram in jiffies of 4 ms": {[]string{
			"90000 0 720000 4000 0 0 0 0 0 400 4000 0 0 0 0", "90050 0 720400 4000 0 0 0 0 0 400 4000 0 0 0 0",
			"90100 0 720800 4004 0 0 0 0 0 404 4004 0 0 0 0",
		}, "80 0.00 0.4", 0},
		"a number in flight below zero": {[]string{
			"1000 0 8000 90 0 0 0 0 4294967295 80 90", "1000 0 8000 90 0 0 0 0 4294967295 1080 90",
		}, "- 0.00 0.0", sample.BusyTooLong | sample.LacksInFlight},
		"and in 64 bits": {[]string{
			"1000 0 8000 90 0 0 0 0 18446744073709551615 80 90", "1100 0 8000 190 0 0 0 0 18446744073709551615 180 190",
		}, "1000 0.10 10.0", sample.LacksInFlight},
		"times that wrap": {[]string{
			"1000 0 8000 4294967200 0 0 0 0 0 4294967200 4294967200", "1200 0 9600 104 0 0 0 0 0 104 104",
		}, "1000 0.20 20.0", 0},
		"without discards and flushes": {[]string{
			"1000 0 8000 90 100 0 800 10 0 80 100", "1200 0 9600 290 100 0 800 10 0 180 300",
		}, "1000 0.20 10.0", 0},
		"discards that take no time": {[]string{
			"1000 0 8000 90 0 0 0 0 0 80 90 5000 0 40000 0", "1200 0 9600 290 0 0 0 0 0 180 290 9000 0 72000 0",
		}, "1000 0.20 10.0", sample.LacksDiscardTime},
	} {
		d, ok := judged(t, time.Second, c.lines...)
		text := func(format string, scale, v float64, ok bool) string {
			if !ok {
				return "-"
			}
			return fmt.Sprintf(format, scale*v)
		}
		await, hasAwait := d.ReadAwait()
		depth, hasDepth := d.QueueDepth()
		busy, hasBusy := d.Utilization()
		got := strings.Join([]string{text("%.0f", 1e6, await, hasAwait), text("%.2f", 1, depth, hasDepth),
			text("%.1f", 100, busy, hasBusy)}, " ")
		if !ok || got != c.want || d.Has.Lacks() != c.lacks {
			t.Errorf("%s: got %v, %q, lacking %b; want %q, lacking %b", name, ok, got, d.Has.Lacks(), c.want, c.lacks)
		}
	}
}

// Counters that go back, as of a device that was plugged in again, have no difference.
func TestCountersGoBack(t *testing.T) {
	const before = "1000 0 8000 90 500 0 4000 50 0 80 140 0 0 0 0 0 0"
	for name, after := range map[string]string{
		"all":             "10 0 80 1 0 0 0 0 0 1 1 0 0 0 0 0 0",
		"bytes":           "1100 0 7000 99 500 0 4000 50 0 80 149 0 0 0 0 0 0",
		"a time":          "1100 0 8800 20 500 0 4000 50 0 80 149 0 0 0 0 0 0",
		"io_ticks":        "1100 0 8800 99 500 0 4000 50 0 10 149 0 0 0 0 0 0",
		"the same counts": "1000 0 8000 70 500 0 4000 50 0 60 120 0 0 0 0 0 0",
	} {
		if d, ok := judged(t, time.Second, before, after); ok {
			t.Errorf("%s: got %+v, want no difference", name, d)
		}
	}
	// The faults of a device end with it.
	d, ok := judged(t, time.Second,
		"41000 0 8400000 0 0 0 0 0 0 0 0", "10 0 80 5 0 0 0 0 0 5 5", "20 0 160 15 0 0 0 0 0 15 15")
	if !ok || d.Has.Lacks() != 0 {
		t.Errorf("after another device: got %v, lacking %b; want its own counters", ok, d.Has.Lacks())
	}
}

// A disk without times is named once, with the file.
func TestReadNamesUntimedDisks(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/diskstats", []byte("254 0 vda 41000 0 8400000 0 900 0 65000 0 0 0 0\n"))
	fixture.Write(t, root, "sys/class/block/vda/stat", nil)
	s := source(t, root)
	if err := s.Read(new(sample.Sample)); err != nil {
		t.Fatal(err)
	}
	err := s.Read(new(sample.Sample))
	if err == nil || !strings.Contains(err.Error(), root+"/proc/diskstats counts operations of vda without their times") {
		t.Errorf("got %v, want the file and the disk", err)
	}
	if err := s.Read(new(sample.Sample)); err != nil {
		t.Errorf("got %v again, want it once", err)
	}
}

// A disk that the kernel does not count has no zeros.
func TestUncounted(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/diskstats",
		[]byte("254 0 vda 10 0 80 5 0 0 0 0 0 5 5\n254 16 vdb 10 0 80 5 0 0 0 0 0 5 5\n"))
	fixture.Write(t, root, "sys/class/block/vda/queue/iostats", []byte("0\n"))
	fixture.Write(t, root, "sys/class/block/vdb/queue/iostats", []byte("1\n"))
	disks := read(t, source(t, root))
	if a, b := &disks[0], &disks[1]; !a.Unused() || a.Has&sample.LacksTimes == 0 || b.Unused() || b.Has.Lacks() != 0 {
		t.Errorf("got %+v, want vda as not counted, and vdb", disks)
	}
}
