package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStatAgainstIostat runs fio under iostat -x and stat, and compares the two. Both begin before fio and end after
// it, so that their intervals hold the same operations.
//
// iostat does not print the real length of its interval, and on a busy machine it wakes late. So a failure is tried
// again.
func TestStatAgainstIostat(t *testing.T) {
	iostat, fio := tool(t, "iostat"), tool(t, "fio")
	random, stream := loopDevice(t, "random"), loopDevice(t, "stream")
	const tries = 3
	for try := 1; ; try++ {
		wrong := compareWithIostat(t, iostat, fio, random, stream)
		if len(wrong) == 0 {
			return
		}
		if try == tries {
			t.Fatalf("three times stat and iostat differ, at last:\n%s", strings.Join(wrong, "\n"))
		}
		t.Logf("try %d:\n%s", try, strings.Join(wrong, "\n"))
	}
}

// TestStatFlagsAgainstIostat compares the tables of both with the same flags and devices: in MB (-m), without idle
// devices (-z), and without a report since boot (-y). A failure is tried again, as above.
func TestStatFlagsAgainstIostat(t *testing.T) {
	iostat, fio := tool(t, "iostat"), tool(t, "fio")
	busy, idle := loopDevice(t, "busy"), loopDevice(t, "idle")
	const tries = 3
	for try := 1; ; try++ {
		wrong := compareTables(t, iostat, fio, busy, idle)
		if len(wrong) == 0 {
			return
		}
		if try == tries {
			t.Fatalf("three times stat and iostat differ, at last:\n%s", strings.Join(wrong, "\n"))
		}
		t.Logf("try %d:\n%s", try, strings.Join(wrong, "\n"))
	}
}

// compareTables returns what differs between the tables.
func compareTables(t *testing.T, iostat, fio, busy, idle string) (wrong []string) {
	t.Helper()
	args := []string{"-xymz", busy, idle, fmt.Sprint(parityInterval), "1"}
	if out, err := exec.CommandContext(t.Context(), "dd", "if="+busy, "of=/dev/null", "bs=4k", "count=1",
		"iflag=direct").CombinedOutput(); err != nil {
		t.Fatalf("got the error %v, want none: %s", err, out)
	}
	theirs := exec.CommandContext(t.Context(), iostat, args...)
	theirs.Env = append(os.Environ(), "LC_ALL=C")
	var text strings.Builder
	theirs.Stdout = &text
	if err := theirs.Start(); err != nil {
		t.Fatal(err)
	}
	ours := stallspan(t, append([]string{"stat"}, args...)...)
	ours.start()
	time.Sleep(time.Second)
	if out, err := exec.CommandContext(t.Context(), fio, "--ioengine=psync", "--thread", "--direct=1", "--time_based",
		"--runtime=2", "--size=64M", "--name=work", "--filename="+busy, "--rw=randrw", "--bs=128k",
		"--numjobs=4").CombinedOutput(); err != nil {
		t.Fatalf("fio: %v: %s", err, out)
	}
	if err := theirs.Wait(); err != nil {
		t.Fatalf("iostat: %v", err)
	}
	if code := ours.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, ours.err.String())
	}
	a, b := tableRows(ours.out.String()), tableRows(text.String())
	busy, idle = filepath.Base(busy), filepath.Base(idle)
	if len(a) != 1 || len(b) != 1 || a[busy+"*"] == nil || b[busy] == nil {
		return []string{fmt.Sprintf("want one row, for %s and not for %s: stat\n%s\niostat\n%s", busy, idle,
			ours.out.String(), text.String())}
	}
	compared := 0
	for name, their := range b[busy] {
		our, ok := a[busy+"*"][name]
		switch {
		case strings.HasSuffix(name, "rqm"), name == "drqm/s", name == "dareq-sz": // which stat leaves out
		case !ok:
			wrong = append(wrong, fmt.Sprintf("stat has no column %s", name))
		case our == "-" && their == "0.00":
		default:
			compared++
			x, err1 := strconv.ParseFloat(our, 64)
			y, err2 := strconv.ParseFloat(their, 64)
			// 3 %: rates are over intervals that differ by some milliseconds
			if err1 != nil || err2 != nil || math.Abs(x-y) > 0.03*y+0.0101 {
				wrong = append(wrong, fmt.Sprintf("%s: stat %s, iostat %s", name, our, their))
			}
		}
	}
	if compared < 10 {
		wrong = append(wrong, fmt.Sprintf("compared %d columns, want 10 or more", compared))
	}
	return wrong
}

// tableRows are the rows of a table of disks, by device and by column.
func tableRows(text string) map[string]map[string]string {
	rows := map[string]map[string]string{}
	var header []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && fields[0] == "Device":
			header = fields
		case header != nil && len(fields) == len(header):
			rows[fields[0]] = map[string]string{}
			for i, name := range header[1:] {
				rows[fields[0]][name] = fields[i+1]
			}
		}
	}
	return rows
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s (Debian: fio and sysstat): %v", name, err)
	}
	return path
}

// loopDevice makes a block device over a file, with direct I/O.
func loopDevice(t *testing.T, name string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a loop device")
	}
	losetup := tool(t, "losetup")
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(losetup, "--find", "--show", "--direct-io=on", file).CombinedOutput()
	if err != nil {
		t.Skipf("needs a loop device with direct I/O: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%s stays: %v: %s", device, err, out)
		}
	})
	return device
}

// parityInterval is the interval of both tools, in seconds. fio runs for half of it, from one second after their start.
const parityInterval = 6

// compareWithIostat returns the numbers that differ by more than the tolerance.
func compareWithIostat(t *testing.T, iostat, fio, random, stream string) (wrong []string) {
	t.Helper()
	for _, device := range []string{random, stream} {
		// If I/O begins on two CPUs at once, the kernel counts the idle time before it as busy: iostat then prints 1200 %,
		// stat 100 %. A single read before ends the idle time.
		if out, err := exec.CommandContext(t.Context(), "dd", "if="+device, "of=/dev/null", "bs=4k", "count=1",
			"iflag=direct").CombinedOutput(); err != nil {
			t.Fatalf("got the error %v, want none: %s", err, out)
		}
	}
	began := time.Now()
	long := startIostat(t, iostat, "-x", "-y", "-o", "JSON", random, stream, fmt.Sprint(parityInterval), "1")
	// has await
	short := startIostat(t, iostat, "-x", "-s", "-y", "-o", "JSON", random, stream, fmt.Sprint(parityInterval), "1")
	ours := stallspan(t, "stat", "--json", fmt.Sprint(parityInterval), "1")
	ours.start()
	time.Sleep(time.Second)
	work := exec.CommandContext(t.Context(), fio, "--ioengine=psync", "--thread", "--direct=1", "--time_based",
		"--runtime=2", "--size=64M",
		"--name=random", "--filename="+random, "--rw=randrw", "--bs=4k", "--numjobs=8",
		"--name=stream", "--filename="+stream, "--rw=rw", "--bs=256k", "--numjobs=2", "--fsync=16",
		"--name=merged", "--filename="+stream, "--rw=read", "--bs=4k", "--ioengine=libaio", "--iodepth=16", "--iodepth_batch=16",
		"--name=trim", "--filename="+stream, "--rw=randtrim", "--bs=64k", "--rate_iops=200")
	from := time.Now()
	out, err := work.CombinedOutput()
	to := time.Now()
	if err != nil {
		t.Fatalf("fio: %v: %s", err, out)
	}
	inTime := time.Since(began).Seconds() < parityInterval-0.5
	seen := long()
	for name, disk := range short() {
		if seen[name] != nil {
			maps.Copy(seen[name], disk)
		}
	}
	if code := ours.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, ours.err.String())
	}
	list := statLines(t, ours.out.String())
	if len(list) != 1 {
		t.Fatalf("%d lines", len(list))
	}
	started := list[0].Time.Add(-time.Duration(list[0].Interval * float64(time.Second)))
	if !inTime || from.Before(started) || to.After(list[0].Time) {
		return []string{fmt.Sprintf("fio ran from %v to %v, stat watched from %v to %v", from, to, started, list[0].Time)}
	}
	for _, device := range []string{random, stream} {
		wrong = append(wrong, differences(t, filepath.Base(device), &list[0], seen)...)
	}
	return wrong
}

// startIostat starts iostat, and returns a function that waits for its numbers.
func startIostat(t *testing.T, path string, args ...string) func() map[string]map[string]float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var text strings.Builder
	cmd.Stdout = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() map[string]map[string]float64 {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("iostat: %v", err)
		}
		return iostatDisks(t, text.String())
	}
}

// iostatDisks are the numbers of iostat -o JSON, by device and by iostat's names.
func iostatDisks(t *testing.T, text string) map[string]map[string]float64 {
	t.Helper()
	var doc struct {
		Sysstat struct {
			Hosts []struct {
				Statistics []struct {
					Disk []map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Sysstat.Hosts) != 1 ||
		len(doc.Sysstat.Hosts[0].Statistics) != 1 {
		t.Fatalf("%v: got %s, want the statistics of one host", err, text)
	}
	disks := map[string]map[string]float64{}
	for _, d := range doc.Sysstat.Hosts[0].Statistics[0].Disk {
		name, _ := d["disk_device"].(string)
		disks[name] = map[string]float64{}
		for key, value := range d {
			if number, ok := value.(float64); ok {
				disks[name][key] = number
			}
		}
	}
	return disks
}

// differences compares one device: operations and bytes of the whole interval within 1 %, times within 2 %. The
// tolerance also includes iostat's rounding to two decimals.
func differences(t *testing.T, name string, line *statDocument, seen map[string]map[string]float64) (wrong []string) {
	t.Helper()
	theirs := seen[name]
	var ours *statDiskLine
	for i := range line.Disks {
		if line.Disks[i].Name == name {
			ours = &line.Disks[i]
		}
	}
	if theirs == nil || ours == nil {
		return []string{fmt.Sprintf("%s: iostat has %v, stat has %+v", name, theirs, line.Disks)}
	}
	if ours.Discards == nil || ours.DiscardBytes == nil || ours.Flushes == nil {
		t.Skip("needs Linux 5.5, which counts flushes")
	}
	const rounding = 0.005001
	compare := func(key string, value, unit, length, limit float64) {
		their, ok := theirs[key]
		if !ok {
			t.Logf("%s: this iostat does not print %s", name, key)
			return
		}
		total, theirTotal := value/unit*length, their
		slack := rounding
		if length != 1 {
			theirTotal, slack = their*parityInterval, rounding*parityInterval
		}
		off := math.Abs(total - theirTotal)
		t.Logf("%s %-9s stat %12.3f  iostat %12.3f  off by %.3f %%", name, key, total, theirTotal,
			100*off/max(theirTotal, 1e-9))
		if off > limit*theirTotal+slack {
			wrong = append(wrong, fmt.Sprintf("%s %s: stat %.3f, iostat %.3f", name, key, total, theirTotal))
		}
	}
	compare("r/s", ours.Reads, 1, line.Interval, 0.01)
	compare("w/s", ours.Writes, 1, line.Interval, 0.01)
	compare("d/s", *ours.Discards, 1, line.Interval, 0.01)
	compare("f/s", *ours.Flushes, 1, line.Interval, 0.01)
	compare("rkB/s", ours.ReadBytes, 1024, line.Interval, 0.01)
	compare("wkB/s", ours.WriteBytes, 1024, line.Interval, 0.01)
	compare("dkB/s", *ours.DiscardBytes, 1024, line.Interval, 0.01)
	compare("rrqm/s", ours.ReadsMerged, 1, line.Interval, 0.01)
	compare("wrqm/s", ours.WritesMerged, 1, line.Interval, 0.01)
	compare("rareq-sz", ours.ReadSize, 1024, 1, 0.01)
	compare("wareq-sz", ours.WriteSize, 1024, 1, 0.01)
	compare("r_await", ours.ReadAwait, 1, 1, 0.02)
	compare("w_await", ours.WriteAwait, 1, 1, 0.02)
	compare("await", ours.Await, 1, 1, 0.02)
	compare("d_await", ours.DiscardAwait, 1, 1, 0.02)
	compare("f_await", ours.FlushesAwait, 1, 1, 0.02)
	compare("aqu-sz", ours.QueueDepth, 1, line.Interval, 0.02)
	compare("util", ours.Utilization, 0.01, line.Interval, 0.02)
	return wrong
}
