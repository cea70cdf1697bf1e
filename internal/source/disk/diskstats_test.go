package disk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs/blockdevice"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestParseColumns(t *testing.T) {
	full := sample.Disk{
		Name: "sda", ReadIOs: 1, ReadMerges: 2, ReadBytes: 3 * 512, ReadTicks: 4 * time.Millisecond,
		WriteIOs: 5, WriteMerges: 6, WriteBytes: 7 * 512, WriteTicks: 8 * time.Millisecond,
		InFlight: 9, IOTicks: 10 * time.Millisecond, TimeInQueue: 11 * time.Millisecond,
	}
	discards := full
	discards.Has = sample.HasDiscards
	discards.DiscardIOs, discards.DiscardMerges = 12, 13
	discards.DiscardBytes, discards.DiscardTicks = 14*512, 15*time.Millisecond
	flushes := discards
	flushes.Has |= sample.HasFlushes
	flushes.FlushIOs, flushes.FlushTicks = 16, 17*time.Millisecond
	for columns := range 25 {
		line := "   8       0 sda"
		for i := range columns {
			line += fmt.Sprint(" ", i+1)
		}
		var want []sample.Disk
		switch {
		case columns >= flushColumns:
			want = []sample.Disk{flushes}
		case columns >= discardColumns:
			want = []sample.Disk{discards}
		case columns >= firstColumns:
			want = []sample.Disk{full}
		}
		got, bad := parse([]byte(line+"\n"), nil, nil)
		if !slices.Equal(got, want) || bad.lines != 1-len(want) {
			t.Errorf("%d columns: got %+v, %v; want %+v", columns, got, bad.err(), want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	rest := " 1 1 1 1 1 1 1 1 1 1"
	for _, line := range []string{
		"x 0 sda 1" + rest,
		"8 x sda 1" + rest,
		"8 0 ",
		"8",
		"8 0 sda -1" + rest,
		"8 0 sda 1x" + rest,
		"8 0 sda 1.5" + rest,
		"8 0 sda 18446744073709551616" + rest,
		"8 0 sda 1 1 36028797018963968 1 1 1 1 1 1 1 1", // sectors beyond 2^64 bytes
		"8 0 sda 1 1 1 9223372036855 1 1 1 1 1 1 1",     // milliseconds beyond 2^63 ns
		"8 0 sda 1" + rest + " x",
	} {
		if got, bad := parse([]byte(line+"\n"), nil, nil); len(got) != 0 || bad.lines != 1 || bad.first != 1 {
			t.Errorf("%q: got %+v, %v; want an error", line, got, bad.err())
		}
	}
	// Truncated in its last number.
	if got, bad := parse([]byte("8 0 sda 1"+rest), nil, nil); len(got) != 0 || bad.lines != 1 {
		t.Errorf("got %+v", got)
	}
	largest := "8 0 sda 18446744073709551615 1 36028797018963967 9223372036854 1 1 1 1 1 1 1\n"
	if got, bad := parse([]byte(largest), nil, nil); len(got) != 1 || bad.lines != 0 {
		t.Errorf("the largest values: got %+v, %v", got, bad.err())
	}
}

// oracle reads diskstats with prometheus/procfs.
func oracle(t testing.TB, folder string) []sample.Disk {
	t.Helper()
	fs, err := blockdevice.NewFS(folder, folder)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := fs.ProcDiskstats()
	if err != nil {
		t.Fatal(err)
	}
	var disks []sample.Disk
	for _, s := range stats {
		d := sample.Disk{
			Name: s.DeviceName, ReadIOs: s.ReadIOs, ReadMerges: s.ReadMerges, ReadBytes: s.ReadSectors * 512,
			ReadTicks: milliseconds(s.ReadTicks), WriteIOs: s.WriteIOs, WriteMerges: s.WriteMerges,
			WriteBytes: s.WriteSectors * 512, WriteTicks: milliseconds(s.WriteTicks), InFlight: s.IOsInProgress,
			IOTicks: milliseconds(s.IOsTotalTicks), TimeInQueue: milliseconds(s.WeightedIOTicks),
		}
		if s.IoStatsCount >= 18 {
			d.Has |= sample.HasDiscards
			d.DiscardIOs, d.DiscardMerges = s.DiscardIOs, s.DiscardMerges
			d.DiscardBytes, d.DiscardTicks = s.DiscardSectors*512, milliseconds(s.DiscardTicks)
		}
		if s.IoStatsCount >= 20 {
			d.Has |= sample.HasFlushes
			d.FlushIOs, d.FlushTicks = s.FlushRequestsCompleted, milliseconds(s.TimeSpentFlushing)
		}
		disks = append(disks, d)
	}
	return disks
}

// oracleOf writes text into folder and reads it with prometheus/procfs.
func oracleOf(t testing.TB, folder string, text []byte) []sample.Disk {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "diskstats"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return oracle(t, folder)
}

func TestFixturesAgainstProcfs(t *testing.T) {
	for _, name := range []string{"disk_laptop", "disk_server", "disk_vm"} {
		root := fixture.Root(t, name)
		got := read(t, source(t, root))
		for i := range got {
			got[i].Leaf, got[i].Layer, got[i].On = false, false, ""
		}
		if want := oracle(t, filepath.Join(root, "proc")); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

// kernelLine matches lines of the kernel: 11, 15, 17 or more values that fit our units.
var kernelLine = regexp.MustCompile(
	`^ *\d{1,9} +\d{1,9} [!-~]{1,40}( \d{1,12}){11}(( \d{1,12}){4}(( \d{1,12}){2}( \d{1,12}){0,9})?)?$`,
)

func FuzzParse(f *testing.F) {
	f.Add([]byte("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"))
	f.Add(
		[]byte(
			"   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n 259 1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11\n",
		),
	)
	f.Add([]byte(" 253 0 dm-0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\ngarbage\n\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0"))
	f.Add([]byte("8 0 sda 18446744073709551616 1 1 1 1 1 1 1 1 1 1\n\x00\xff \t\n"))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		got, bad := parse(text, nil, nil)
		lines, asKernel := 0, len(text) > 0 && text[len(text)-1] == '\n'
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if line != "" {
				lines++
				asKernel = asKernel && kernelLine.MatchString(line)
			}
		}
		if len(got)+bad.lines != lines {
			t.Errorf("got %d devices and %d bad lines, want %d in total", len(got), bad.lines, lines)
		}
		names := make([]string, len(got))
		for i, d := range got {
			names[i] = d.Name
			if d.Name == "" || d.ReadTicks < 0 || d.WriteTicks < 0 || d.IOTicks < 0 || d.TimeInQueue < 0 || d.DiscardTicks < 0 ||
				d.FlushTicks < 0 {
				t.Errorf("got the impossible device %+v", d)
			}
		}
		if again, _ := parse(text, names, nil); !slices.Equal(again, got) {
			t.Errorf("with known names: got %+v, want %+v", again, got)
		}
		if asKernel && len(text) < 8<<10 {
			if bad.lines != 0 {
				t.Errorf("valid lines: got error %v, want none", bad.err())
			}
			if want := oracleOf(t, folder, text); !slices.Equal(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
	})
}

// kernelText returns the text of a kernel with so many values for some devices.
func kernelText(random *rand.Rand, devices, columns int) []byte {
	var text bytes.Buffer
	for i := range devices {
		fmt.Fprintf(&text, "%4d %7d %s", random.IntN(300), random.IntN(1<<20),
			[]string{"sd", "nvme0n", "dm-", "cciss/c0d", "md_d"}[random.IntN(5)]+fmt.Sprint(i))
		for range columns {
			fmt.Fprintf(&text, " %d", random.Uint64N(1<<random.IntN(42)+1))
		}
		text.WriteByte('\n')
	}
	return text.Bytes()
}

// FuzzAgainstProcfs compares generated text with prometheus/procfs, then changes one byte, which must change no other
// line.
func FuzzAgainstProcfs(f *testing.F) {
	f.Add(uint64(1), uint8(10), uint8(0), uint(5), byte('x'))
	f.Add(uint64(2), uint8(1), uint8(1), uint(0), byte(' '))
	f.Add(uint64(3), uint8(40), uint8(2), uint(333), byte('\n'))
	f.Add(uint64(4), uint8(3), uint8(3), uint(17), byte('-'))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, seed uint64, devices, era uint8, at uint, with byte) {
		columns := []int{firstColumns, discardColumns, flushColumns, flushColumns + 3}[era%4]
		text := kernelText(rand.New(rand.NewPCG(seed, 0)), int(devices%64)+1, columns)
		before, bad := parse(text, nil, nil)
		if want := oracleOf(t, folder, text); bad.lines != 0 || !slices.Equal(before, want) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", bad.err(), before, want)
		}
		at %= uint(len(text) - 1) // the last line keeps its line feed
		if text[at] == '\n' || with == '\n' {
			return // joins or splits lines
		}
		spoiled := bytes.Count(text[:at], []byte{'\n'})
		text[at] = with
		after, bad := parse(text, nil, nil)
		if len(after)+bad.lines != len(before) {
			t.Fatalf("got %d devices and %d bad lines, want %d in total", len(after), bad.lines, len(before))
		}
		if bad.lines == 0 {
			after[spoiled] = before[spoiled]
		} else {
			before = slices.Delete(before, spoiled, spoiled+1)
		}
		if !slices.Equal(after, before) {
			t.Errorf("after a byte of line %d:\ngot  %+v\nwant %+v", spoiled+1, after, before)
		}
	})
}

// BenchmarkRead compares a tick with a reading of prometheus/procfs, on fixtures and on this machine.
func BenchmarkRead(b *testing.B) {
	roots := map[string]string{"10 devices": b.TempDir(), "100 devices": b.TempDir(), "this machine": "/"}
	machine(b, roots["10 devices"], hundred()[:10])
	machine(b, roots["100 devices"], hundred())
	for _, name := range []string{"10 devices", "100 devices", "this machine"} {
		root := roots[name]
		b.Run(name+"/ours", func(b *testing.B) {
			s := source(b, root)
			var out sample.Sample
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := s.Read(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/procfs", func(b *testing.B) {
			fs, err := blockdevice.NewFS(filepath.Join(root, "proc"), root)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fs.ProcDiskstats(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
