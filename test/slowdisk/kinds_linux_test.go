package slowdisk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// The lower bounds of these tests are strict, because no request is answered early. The upper bounds are wide, for a
// busy machine. The measured values are logged.

func TestSpinningServesOneAtATime(t *testing.T) {
	const delay = 10 * time.Millisecond
	d, path := slow(t, Spinning, Options{}, mib)
	var before, after counters
	var one, alone, eight, among, waited time.Duration
	for range 5 { // on a busy machine, fewer than eight readers may wait at a time
		before = counted(t, d.Device)
		one, alone = direct(t, path, 4*kib, 6, 1)
		eight, among = direct(t, path, 4*kib, 48, 8)
		after = counted(t, d.Device)
		waited = time.Duration(after.readTime-before.readTime) * time.Millisecond
		if waited >= 6*delay+40*8*delay && eight <= 16*one {
			break
		}
	}
	t.Logf("a reader: median %v; 8 readers: median %v", alone, among)
	if one < 6*delay || eight < 48*delay || eight > 16*one {
		t.Errorf("a reader takes %v for 6 reads, 8 take %v for 48", one, eight)
	}
	if after.reads-before.reads != 54 || after.readSectors-before.readSectors != 54*8 || after.writes != before.writes {
		t.Errorf("54 reads of 4 KiB counted as from %+v to %+v", before, after)
	}
	if waited < 6*delay+40*8*delay {
		t.Errorf("the device counted %v of waiting", waited)
	}
}

func TestSATAHasOneThroughput(t *testing.T) {
	_, path := slow(t, SATA, Options{}, 24*mib)
	for _, run := range []struct{ piece, readers int }{{4 * kib, 16}, {128 * kib, 1}, {128 * kib, 8}, {mib, 1}, {mib, 8}} {
		const bytes = 12 * mib
		took, median := direct(t, path, run.piece, bytes/run.piece, run.readers)
		want := time.Duration(float64(bytes) / (64 * mib) * float64(time.Second))
		t.Logf("%d readers of %d KiB: %.1f MiB/s, median %v", run.readers, run.piece/kib, bytes/mib/took.Seconds(), median)
		if took < want-credit || took > 4*want && run.piece > 4*kib { // small requests may be limited by the CPU
			t.Errorf("%d readers of %d KiB: took %v, want %v", run.readers, run.piece/kib, took, want)
		}
	}
}

func TestParallelServesManyAtOnce(t *testing.T) {
	const delay = 5 * time.Millisecond
	d, path := slow(t, Parallel, Options{Delay: delay}, 8*mib)
	before := counted(t, d.Device)
	one, alone := direct(t, path, 4*kib, 10, 1)
	many, among := direct(t, path, 4*kib, 320, 32)
	more, queued := direct(t, path, 4*kib, 1280, 128)
	after := counted(t, d.Device)
	t.Logf(
		"a reader: %v, median %v; 32 readers: %v, median %v; 128 readers: %v, median %v",
		one,
		alone,
		many,
		among,
		more,
		queued,
	)
	if one < 10*delay || many > 16*one {
		t.Errorf("a reader takes %v for 10 reads, 32 take %v for 320", one, many)
	}
	if more < 20*delay {
		t.Errorf("1280 reads by 128 readers, 64 of them served in parallel, took %v", more)
	}
	if after.reads-before.reads != 1610 || after.readSectors-before.readSectors != 1610*8 {
		t.Errorf("1610 reads of 4 KiB counted as from %+v to %+v", before, after)
	}
}

func TestThrottledIsNotSeenAtTheDevice(t *testing.T) {
	d, path := slow(t, Throttled, Options{}, mib)
	var waited, took time.Duration
	for range 10 { // on a busy machine, the device waits for a CPU
		before := counted(t, d.Device)
		took, _ = direct(t, path, 4*kib, 240, 4)
		after := counted(t, d.Device)
		waited = time.Duration(after.readTime-before.readTime) * time.Millisecond
		t.Logf("4 readers take %v for 240 reads; the device counts %v of waiting", took, waited)
		if took < 400*time.Millisecond { // the kernel allows a burst at first
			t.Errorf("240 reads took %v, want 0.6 s", took)
		}
		// Requests that pass together may be merged.
		reads := after.reads - before.reads + after.readMerges - before.readMerges
		if reads != 240 || after.readSectors-before.readSectors != 240*8 {
			t.Errorf("240 reads of 4 KiB counted as from %+v to %+v", before, after)
		}
		if waited <= took && took <= 5*time.Second {
			return
		}
	}
	t.Errorf("4 readers waited %v each, want 0.6 s; the device counted %v in total, want less", took, waited)
}

func TestNetworkHasNoDevice(t *testing.T) {
	d, path := slow(t, Network, Options{}, mib)
	one, alone := direct(t, path, 4*kib, 20, 1)
	eight, among := direct(t, path, 4*kib, 160, 8)
	t.Logf("a reader: median %v; 8 readers: median %v", alone, among)
	if one < 40*time.Millisecond || eight > 7*one {
		t.Errorf("a reader takes %v for 20 reads, 8 take %v for 160", one, eight)
	}
	buffered := func() time.Duration {
		begin := time.Now()
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	cold, warm := buffered(), buffered()
	for range 10 { // the machine may be busy
		warm = min(warm, buffered())
	}
	t.Logf("1 MiB in %v from the network, in %v from the page cache", cold, warm)
	if cold < 2*time.Millisecond || warm > cold {
		t.Errorf("1 MiB in %v from the network, in %v from the page cache", cold, warm)
	}
	if d.Device != "" {
		t.Errorf("its device is %q", d.Device)
	}
}

func TestWritesAreSlowToo(t *testing.T) {
	for _, kind := range []Kind{Spinning, Network} {
		t.Run(string(kind), func(t *testing.T) {
			d, _ := slow(t, kind, Options{Delay: 10 * time.Millisecond}, mib)
			begin := time.Now()
			filled(t, d, 256*kib)
			took := time.Since(begin)
			if err := d.Fast(); err != nil {
				t.Fatal(err)
			}
			fast := took
			for range 10 { // the machine may be busy
				begin = time.Now()
				filled(t, d, 256*kib)
				fast = min(fast, time.Since(begin))
			}
			t.Logf("256 KiB written and flushed in %v, fast in %v", took, fast)
			if took < 2*d.Options.Delay || took < 2*fast {
				t.Errorf("256 KiB written and flushed in %v, fast in %v", took, fast)
			}
		})
	}
}

// TestUnder checks that the disk source finds the disk that a Disk reports.
func TestUnder(t *testing.T) {
	for _, kind := range []Kind{Spinning, SATA, Parallel, Throttled, Network, Memory, Local} {
		t.Run(string(kind), func(t *testing.T) {
			d := opened(t, kind, Options{})
			if entries, err := os.ReadDir(d.Dir); err != nil || len(entries) > 0 {
				t.Errorf("%s is not empty: %v, %v", d.Dir, entries, err)
			}
			source, err := disk.New("/")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = source.Close() }()
			under, err := source.Under(filepath.Join(d.Dir, "."))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", under)
			if want := strings.Fields(d.Device); !slices.Equal(under.Disks, want) && (kind != Local || d.Device != "") {
				t.Errorf("under %s are %v, want %v", d.Dir, under.Disks, want)
			}
			var s sample.Sample
			if err := source.Read(&s); err != nil {
				t.Fatal(err)
			}
			for i := range s.Disks {
				if s.Disks[i].Name == d.Device && !s.Disks[i].Leaf {
					t.Errorf("%s is no leaf", d.Device)
				}
			}
			if kind == Memory || kind == Local {
				return
			}
			if d.Device == "" && kind != Network {
				t.Error("it names no device")
			}
			if d.Device != "" {
				ahead, err := os.ReadFile(filepath.Join(queueFolder(d.Device), "read_ahead_kb"))
				if err != nil || string(ahead) != "128\n" {
					t.Errorf("it reads %q KiB ahead, %v", ahead, err)
				}
			}
		})
	}
}
