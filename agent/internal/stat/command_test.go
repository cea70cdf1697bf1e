package stat

import (
	"bytes"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/golden"
)

// testMachine returns readings of a machine with all kinds of devices, one second apart.
func testMachine() [3]sample.Snapshot {
	began := time.Date(2026, 11, 3, 12, 0, 0, 250_000_000, time.UTC)
	var readings [3]sample.Snapshot
	for i := range readings {
		n := uint64(i)
		ms := func(aSecond int) time.Duration { return time.Duration(aSecond*i) * time.Millisecond }
		at := sample.Stamp{Mono: ms(1000), Wall: began.Add(ms(1000))}
		both := sample.HasDiscards | sample.HasFlushes
		readings[i].Disks = sample.Sample{At: at, Disks: []sample.Disk{
			{Name: "loop0", ReadIOs: 12, Has: both}, // idle
			{Name: "loop1", Has: both},              // never used
			{Name: "nvme0n1", Leaf: true, Has: both, ReadIOs: 1000 + 61_000*n, ReadMerges: 14 * n, ReadBytes: 61_000 * 4096 * n,
				ReadTicks: ms(12_200), IOTicks: ms(1000), TimeInQueue: ms(12_300)},
			{Name: "nvme0n1p1", Has: both, ReadIOs: 1000 + 61_000*n, ReadBytes: 61_000 * 4096 * n, ReadTicks: ms(12_200),
				IOTicks: ms(1000), TimeInQueue: ms(12_300)},
			{Name: "sda", Leaf: true, Has: both, WriteIOs: 1 + 180*n, WriteMerges: 30 * n, WriteBytes: 180 * 524_288 * n,
				WriteTicks: ms(180 * 41),
				DiscardIOs: 3 * n, DiscardBytes: 3 * 2 << 20 * n, DiscardTicks: ms(4), FlushIOs: 6 * n, FlushTicks: ms(51),
				IOTicks: ms(973), TimeInQueue: ms(7_437)},
			{Name: "mmcblk0boot0old", Leaf: true, ReadIOs: 5 + 3*n, ReadBytes: 3 * 512 * n, ReadTicks: ms(2)}, // an old kernel
		}}
		if i == 2 {
			// plugged in
			readings[i].Disks.Disks = append(readings[i].Disks.Disks, sample.Disk{Name: "sdb", Leaf: true, ReadIOs: 1 << 40})
		}
		readings[i].Pressures = sample.Sample{At: at,
			Pressures: []sample.Pressure{{Resource: sample.IO, Some: ms(912), Full: ms(47)}}}
		readings[i].Cores = sample.Sample{At: at, Cores: []sample.Core{{Name: "cpu0", User: ms(20)},
			{Name: "cpu17", System: ms(990)}}}
		all := sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy | sample.HasLink
		readings[i].GPUs = sample.Sample{At: at, GPUs: []sample.GPU{
			{ID: "GPU-6f2c", Name: "NVIDIA H200", Busy: ms(431), MemoryUsed: 98_304 << 20, MemoryTotal: 143_771 << 20,
				Temperature: 61, Power: 500, Energy: 412.25 * float64(i), LinkWidth: 16, LinkGeneration: 5, Has: all},
			{ID: "GPU-9b1e", Name: "NVIDIA H100 80GB HBM3 of a long name", Index: 3, Busy: ms(950), Temperature: 88, Power: 700,
				Has: sample.HasTemperature | sample.HasPower},
			{ID: "GPU-77aa", Name: "Tesla with an old driver", Index: 1, Busy: ms(1000)},
			{ID: "GPU-dead", Name: "NVIDIA L4", Index: 2, Status: sample.GPULost, Busy: time.Hour},
		}}
		readings[i].GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-9b1e", At: at.Mono, Values: checkDetails(float64(i))}}
	}
	return readings
}

// checkDetails are the detailed values of one of the GPUs after this many seconds.
func checkDetails(seconds float64) (v sample.GPUValues) {
	v.Set(sample.GPUSMActive, 0.71)
	v.Set(sample.GPUSMOccupancy, 0.234)
	v.Set(sample.GPUTensorActive, 0.113)
	v.Set(sample.GPUDRAMActive, 0.5)
	v.Set(sample.GPUClockSM, 1.41e9)
	v.Set(sample.GPUPowerLimit, 700)
	v.Set(sample.GPUPCIeReceived, 3e9*seconds)
	v.Set(sample.GPUThrottledPower, 0.25*seconds)
	v.Set(sample.GPUThrottledPowerBrake, 0.125*seconds)
	return v
}

// intervals are the rates between a machine's readings.
func intervals(readings []sample.Snapshot) (list []*Rates) {
	for i := range readings[1:] {
		list = append(list, new(Between(&readings[i], &readings[i+1])))
	}
	return list
}

// texts are all formats of the same intervals, by the name of their golden file.
func texts(t *testing.T) map[string]string {
	readings := testMachine()
	both := intervals(readings[:])
	bare := testMachine()
	for i := range bare {
		bare[i].GPUs, bare[i].Pressures, bare[i].Cores = sample.Sample{}, sample.Sample{}, sample.Sample{}
	}
	texts := map[string]string{}
	draw := func(name string, list []*Rates, write func(to *bytes.Buffer, r *Rates) error) {
		var to bytes.Buffer
		for _, r := range list {
			if err := write(&to, r); err != nil {
				t.Fatal(err)
			}
		}
		texts[name] = to.String()
	}
	table := func(width int, remarks bool) func(*bytes.Buffer, *Rates) error {
		s := &liveTable{}
		return func(to *bytes.Buffer, r *Rates) error {
			s.draw(to, r, width, remarks)
			return nil
		}
	}
	draw("wide.txt", both, table(0, false))
	draw("80.txt", both, table(80, true))
	draw("120.txt", both, table(120, true))
	draw("bare.txt", intervals(bare[:2]), table(100, true))
	draw("slices.txt", []*Rates{{At: readings[0].Disks.At, GPUs: []GPU{
		{ID: "GPU-6f2c", Name: "NVIDIA H100 80GB HBM3"},
		{ID: "MIG-fa4e0000-0000-5000-8000-0000000109fd", Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb"},
		{ID: "MIG-fa4e0000-0000-5000-8000-00000002c58d", Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", Status: sample.GPUHung},
		{ID: "MIG-1", Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}}}}, table(80, true))
	draw("nothing.txt", []*Rates{{At: readings[0].Disks.At}}, func(to *bytes.Buffer, r *Rates) error {
		(&liveTable{fine: true}).draw(to, r, 0, false)
		return nil
	})
	var totals summary
	for _, r := range both {
		if err := totals.print(nil, r); err != nil {
			t.Fatal(err)
		}
	}
	var summary bytes.Buffer
	if err := output.WriteTable(&summary, totals.draw); err != nil {
		t.Fatal(err)
	}
	texts["summary.txt"] = summary.String()
	draw("megabytes.txt", both, func(to *bytes.Buffer, r *Rates) error {
		(&liveTable{units: byteUnits{mega: true}}).draw(to, r, 120, false)
		return nil
	})
	draw("human.txt", both, func(to *bytes.Buffer, r *Rates) error {
		(&liveTable{units: byteUnits{human: true}}).draw(to, r, 120, false)
		return nil
	})
	draw("stat.jsonl", append(both, &Rates{At: readings[0].Disks.At}), printJSON)
	return texts
}

func TestStatForms(t *testing.T) {
	for name, text := range texts(t) {
		golden.Check(t, filepath.Join("testdata", name), []byte(text))
	}
}

// No row is wider than the terminal, for any names and numbers. Each column ends below its header.
func TestStatFits(t *testing.T) {
	huge := 1e15
	r := &Rates{Pressure: &Pressure{Some: 1, Full: 1}, BusiestCore: &Core{Name: "cpu127", Utilization: 1}}
	for _, name := range []string{"a", "mapper-of-a-very-long-name", "\x1b[31mred\r\n", "模型/通义千问"} {
		r.Disks = append(r.Disks, Disk{Name: name, ReadsPerSecond: 99999.996, ReadBytesPerSecond: 1e11,
			QueueDepth: new(12345.678), Utilization: new(1.0),
			ReadAwait: new(123456.7)})
		r.GPUs = append(r.GPUs, GPU{Name: name, Utilization: new(1.0), Power: new(1234.56),
			MemoryUsed: new(uint64(1 << 40)), MemoryTotal: new(uint64(1 << 40)),
			GPUUse: GPUUse{SMActive: new(1.0), TensorActive: new(1.0), DRAMActive: new(1.0), Throttled: new(1.0),
				ThrottledBy: "power_brake"}})
	}
	for _, width := range []int{80, 81, 96, 97, 120, 132, 160, 200} {
		var to bytes.Buffer
		(&liveTable{fine: true}).draw(&to, r, width, true)
		for line := range strings.Lines(to.String()) {
			if line = strings.TrimSuffix(line, "\n"); output.Columns(line) > width || output.Printable(line) != line {
				t.Errorf("%d columns of %d: %q", output.Columns(line), width, line)
			}
		}
	}
	var to bytes.Buffer
	r.Disks[0].ReadsPerSecond = huge // garbage: it must not hide the next column
	drawDisks(&to, r.Disks[:1], 80, byteUnits{})
	if !strings.Contains(to.String(), " 1000000000000000 ") {
		t.Errorf("got %s, want 1000000000000000 in a column", to.String())
	}
}

func TestStatArguments(t *testing.T) {
	for _, test := range []struct {
		args []string
		want arguments
	}{
		{nil, arguments{interval: time.Second}},
		{[]string{"5"}, arguments{interval: 5 * time.Second}},
		{[]string{"0.1"}, arguments{interval: 100 * time.Millisecond}},
		{[]string{"1e1", "7"}, arguments{interval: 10 * time.Second, count: 7}},
		{[]string{"500ms", "1"}, arguments{interval: 500 * time.Millisecond, count: 1}},
		{[]string{"24h"}, arguments{interval: 24 * time.Hour}},
		{[]string{"vda", "/dev/sdb", "2", "3"}, arguments{devices: []string{"vda", "sdb"}, interval: 2 * time.Second,
			count: 3}},
		{[]string{"2", "vda"}, arguments{devices: []string{"vda"}, interval: 2 * time.Second}},
		{[]string{"ALL", ".5"}, arguments{all: true, interval: 500 * time.Millisecond}},
	} {
		got, err := parseArguments(test.args)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %+v, %v, want %+v", test.args, got, err, test.want)
		}
	}
	const bounds = "choose 100ms to 24h0m0s"
	for text, says := range map[string]string{
		"0":        bounds,
		"0.09":     bounds,
		"99ms":     bounds,
		"-1":       bounds,
		"86401":    bounds,
		"1e300":    bounds,
		"25h":      bounds,
		"":         "give seconds",
		"1 2":      "give seconds",
		"1 0":      "give seconds",
		"9999999h": "give seconds",
	} {
		if _, err := parseArguments([]string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want an error with %q", text, err, says)
		}
	}
	for _, count := range []string{"0", "-1", "1.5", "", "99999999999999999999"} {
		if _, err := parseArguments([]string{"1", count}); err == nil || !strings.Contains(err.Error(), "COUNT") {
			t.Errorf("%q: got %v, want an error for COUNT", count, err)
		}
	}
	if _, err := parseArguments([]string{"1", "2", "3"}); err == nil || !strings.Contains(err.Error(), `"3"`) {
		t.Errorf("got %v, want an error for a third number", err)
	}
}

// Which disks have rows, by the options. loop0 never works; nvme0n1p1 works in the first of two intervals.
func TestStatChoice(t *testing.T) {
	disks := func(partition float64) *Rates {
		return &Rates{GPUs: []GPU{{Name: "a"}}, Disks: []Disk{{Name: "loop0"}, {Name: "sda", Leaf: true},
			{Name: "nvme0n1", Leaf: true, ReadsPerSecond: 1}, {Name: "nvme0n1p1", ReadsPerSecond: partition}}}
	}
	for name, test := range map[string]struct {
		choice        choice
		first, second string
	}{
		"a table":   {choice{table: true}, "sda nvme0n1 nvme0n1p1", "sda nvme0n1 nvme0n1p1"},
		"ALL":       {choice{table: true, all: true}, "loop0 sda nvme0n1 nvme0n1p1", "loop0 sda nvme0n1 nvme0n1p1"},
		"-z":        {choice{table: true, skipIdle: true}, "nvme0n1 nvme0n1p1", "nvme0n1"},
		"named":     {choice{table: true, names: []string{"loop0"}}, "loop0", "loop0"},
		"named, -z": {choice{names: []string{"sda", "nvme0n1"}, skipIdle: true}, "nvme0n1", "nvme0n1"},
		"a file":    {choice{}, "loop0 sda nvme0n1 nvme0n1p1", "loop0 sda nvme0n1 nvme0n1p1"},
	} {
		for i, want := range []string{test.first, test.second} {
			r := disks(float64(1 - i))
			test.choice.apply(r)
			var got []string
			for _, d := range r.Disks {
				got = append(got, d.Name)
			}
			if strings.Join(got, " ") != want || len(r.GPUs) != 1 {
				t.Errorf("%s, interval %d: got %q, want %q", name, i, got, want)
			}
		}
	}
	r := disks(0)
	if (&choice{onlyDisks: true}).apply(r); len(r.GPUs) != 0 {
		t.Errorf("-d: got %d GPUs, want 0", len(r.GPUs))
	}
}

// The units of iostat -m and -h. Its manual page has no table of them: these were printed by sysstat 12.6.1.
func TestStatUnits(t *testing.T) {
	d := &Disk{ReadBytesPerSecond: 71.3 * kibi * kibi, ReadSize: new(11.1 * kibi), Utilization: new(0.132),
		QueueDepth: new(7.74)}
	for _, test := range []struct {
		units        byteUnits
		name, header string
		want         string
	}{
		{byteUnits{}, "rkB/s", "rkB/s", "73011.20"},
		{byteUnits{mega: true}, "rkB/s", "rMB/s", "71.30"},
		{byteUnits{human: true}, "rkB/s", "rkB/s", "71.3M"},
		{byteUnits{human: true, mega: true}, "rkB/s", "rkB/s", "71.3M"},
		{byteUnits{mega: true}, "rareq-sz", "rareq-sz", "11.10"},
		{byteUnits{human: true}, "rareq-sz", "rareq-sz", "11.1k"},
		{byteUnits{human: true}, "wkB/s", "wkB/s", "0.0k"},
		{byteUnits{human: true}, "wareq-sz", "wareq-sz", "-"},
		{byteUnits{human: true}, "%util", "%util", "13.2%"},
		{byteUnits{human: true}, "aqu-sz", "aqu-sz", "7.74"},
	} {
		i := slices.IndexFunc(diskColumn[:], func(c column) bool { return c.name == test.name })
		c := &diskColumn[i]
		cell := test.units.cell(c, d)
		header := test.units.header(c)
		if header != test.header || strings.TrimSpace(cell) != test.want || len(cell) != c.width {
			t.Errorf("%+v %s: got %q %q, want %q %q", test.units, test.name, header, cell, test.header, test.want)
		}
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 0.15789473684210525: 0.157895, 433374.84678997984: 433375,
		2e9 + 0.4: 2e9, 0.0042701951252386745: 0.0042702, 5266.285714285715: 5266.29, -1234567.8: -1234568, 1: 1} {
		if got := output.Round(v); got != want {
			t.Errorf("%v: got %v, want %v", v, got, want)
		}
	}
	shared := 1.0 / 3
	before := &Rates{Disks: []Disk{{Await: &shared}}, GPUs: []GPU{{GPUUse: GPUUse{SMActive: &shared}}}}
	after := rounded(before)
	if shared != 1.0/3 || *after.Disks[0].Await != 0.333333 || *after.GPUs[0].SMActive != 0.333333 {
		t.Errorf("got %v, %v and %v, want a rounded copy", shared, *after.Disks[0].Await, *after.GPUs[0].SMActive)
	}
}

// The 95th percentile is within 3 % of the sorted values' one, and the bounds are exact.
func TestDistribution(t *testing.T) {
	few := &distribution{lowest: math.Inf(1)}
	for _, v := range []float64{29.31, 99.93, 1, 2, 3} { // of five values the 95th percentile is the highest
		few.add(v, 1)
	}
	if few.quantile(0.95) != 99.93 || few.quantile(0.5) != 3 || few.quantile(0.01) != 1 {
		t.Errorf("few values: got %v, %v and %v", few.quantile(0.95), few.quantile(0.5), few.quantile(0.01))
	}
	d := &distribution{lowest: math.Inf(1)}
	var sorted []float64
	for i := range 1000 {
		v := float64(i*i) / 7
		sorted = append(sorted, v)
		d.add(v, 1)
	}
	if d.lowest != 0 || d.highest != sorted[999] {
		t.Errorf("got %v to %v, want 0 to %v", d.lowest, d.highest, sorted[999])
	}
	for _, q := range []float64{0.001, 0.5, 0.95, 1} {
		want := sorted[int(math.Ceil(q*1000))-1]
		if got := d.quantile(q); math.Abs(got-want) > 0.03*want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
}
