package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

const (
	cardID     = "GPU-4b2c1a9f00112233"
	cardFolder = "sys/class/drm/card1/device/"
)

// cardFiles are the files of a machine with one card of AMD's.
func cardFiles(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"proc/sys/kernel/osrelease":                     "6.12.0\n",
		cardFolder + "uevent":                           "DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:03:00.0\n",
		cardFolder + "unique_id":                        "4b2c1a9f00112233\n",
		cardFolder + "product_name":                     "AMD Instinct MI300X\n",
		cardFolder + "power/runtime_status":             "active\n",
		cardFolder + "power/control":                    "auto\n",
		cardFolder + "mem_info_vram_used":               "1000\n",
		cardFolder + "mem_info_vram_total":              "4000\n",
		cardFolder + "mem_info_gtt_used":                "10\n",
		cardFolder + "mem_info_gtt_total":               "100\n",
		cardFolder + "current_link_width":               "16\n",
		cardFolder + "current_link_speed":               "32.0 GT/s PCIe\n",
		cardFolder + "max_link_width":                   "16\n",
		cardFolder + "max_link_speed":                   "32.0 GT/s PCIe\n",
		cardFolder + "gpu_busy_percent":                 "70\n",
		cardFolder + "hwmon/hwmon3/temp1_input":         "61000\n",
		cardFolder + "hwmon/hwmon3/temp1_crit":          "100000\n",
		cardFolder + "hwmon/hwmon3/temp2_input":         "63000\n",
		cardFolder + "hwmon/hwmon3/temp2_crit":          "110000\n",
		cardFolder + "hwmon/hwmon3/temp3_crit":          "94000\n",
		cardFolder + "hwmon/hwmon3/power1_average":      "300000000\n",
		cardFolder + "hwmon/hwmon3/power1_cap":          "750000000\n",
		cardFolder + "ras/umc_err_count":                "ue: 1\nce: 4\n",
		cardFolder + "ras/gfx_err_count":                "ue: 0\nce: 2\n",
		"sys/class/drm/card1-DP-1/device/uevent":        "DRIVER=amdgpu\n",
		"sys/class/drm/card2/device/uevent":             "DRIVER=nouveau\nPCI_SLOT_NAME=0000:04:00.0\n",
		"sys/class/kfd/kfd/topology/nodes/1/gpu_id":     "51234\n",
		"sys/class/kfd/kfd/proc/4711/vram_51234":        "5000\n",
		"sys/class/kfd/kfd/proc/4712/vram_51234":        "0\n",
		"sys/class/kfd/kfd/proc/4711/sdma_51234":        "1\n",
		"sys/class/kfd/kfd/proc/not-one/vram_51234":     "1\n",
		"sys/class/kfd/kfd/topology/nodes/1/properties": "cpu_cores_count 0\nlocation_id 768\ndomain 0\n",
	} {
		fixture.Write(t, root, path, []byte(text))
	}
	for path, text := range files {
		if text == "" {
			_ = os.Remove(filepath.Join(root, path))
			continue
		}
		fixture.Write(t, root, path, []byte(text))
	}
	return root
}

// tableAt is gpu_metrics of a card after so many milliseconds, that has worked for a share of them.
func tableAt(content int, ms uint64, share float64) []byte {
	const began = math.MaxUint32 - 5500 // the sums wrap
	return encode(content, map[field]uint64{
		amdActivity: 70, amdPower: 400, amdEnergy: (ms + 1000) * 400 << 16 / 1000, amdHotspot: 65, amdMemoryHeat: 50,
		amdGraphicsClock: 2100, amdMemoryClock: 1300,
		amdActivitySum: uint64(uint32(began + uint64(float64(ms)*share*100))),
		amdCounts:      uint64(uint32(began + ms)), amdTime: ms * 100_000, amdPowerCounts: uint64(uint32(began + ms/4)),
		amdThermalCounts: 7, amdHotCounts: 7, amdReplays: 3, amdController: 20,
	})
}

// theCard returns the only card of a machine.
func theCard(t *testing.T, root string) (*amdgpu, *card) {
	t.Helper()
	a := &amdgpu{root: root}
	if n, err := a.count(); n != 1 || err != nil {
		t.Fatalf("got %d cards and %v, want 1", n, err)
	}
	return a, a.cards[0]
}

func TestReadCard(t *testing.T) {
	for _, c := range []struct {
		name    string
		table   []byte
		heat    float64
		power   float64
		clock   float64
		slow    float64
		memory  uint64
		percent float64
		has     sample.GPUFields
		says    string
	}{
		{"summed", tableAt(6, 1000, .4), 65, 400, 2100e6, 110, 1000, 0, sample.HasEnergy, ""},
		{"without a table", nil, 61, 300, 0, 100, 1000, 70, 0, ""},
		{"all ones", encode(3, nil), 61, 300, 0, 100, 1000, 70, 0, ""},
		{"APU", []byte{120, 0, 2, 1}, 61, 300, 0, 100, 1010, 70, 0, ""},
		{"newer", []byte{120, 0, 1, 9}, 61, 300, 0, 100, 1000, 70, 0, "gpu_metrics: its version 1.9 is not known: update"},
		{"garbage", encode(3, map[field]uint64{amdActivity: 70, amdEdge: 9000, amdPower: 60000}), 61, 300, 0, 100, 1000, 70,
			0, ""},
		{"64 bits of garbage", encode(3, map[field]uint64{amdActivity: 70, amdEnergy: 1<<64 - 2}), 61, 300, 0, 100, 1000,
			70, 0, ""},
	} {
		a, card := theCard(t, cardFiles(t, map[string]string{cardFolder + "gpu_metrics": string(c.table)}))
		r := newDeviceReader(card).read(a, request{gauges: true, power: true})
		said := fmt.Sprint(r.problems)
		if c.says == "" && len(r.problems) > 0 || !strings.Contains(said, c.says) {
			t.Errorf("%s: got %s, want %q", c.name, said, c.says)
		}
		clock, _ := r.detail.Get(sample.GPUClockGraphics)
		if g := r.gauges; g.Temperature != c.heat || g.Power != c.power || clock != c.clock || g.MemoryUsed != c.memory ||
			g.Has&sample.HasEnergy != c.has || g.LinkGeneration != 5 || g.LinkWidth != 16 || len(r.points) != 1 ||
			r.points[0].value != c.percent || (r.points[0].kind == averaged) != (c.percent > 0) {
			t.Errorf("%s: got %+v, clock %v and samples %+v", c.name, g, clock, r.points)
		}
		for q, want := range map[quantity]float64{sample.GPUErrorsCorrected: 6, sample.GPUErrorsUncorrected: 1,
			sample.GPUPowerLimit: 750, sample.GPUSlowdownAt: c.slow, sample.GPUMemorySlowdownAt: 94} {
			if got, ok := r.detail.Get(q); got != want || !ok {
				t.Errorf("%s: %v: got %v, want %v", c.name, q, got, want)
			}
		}
		if _, ok := r.detail.Get(sample.GPUThrottledBoard); ok {
			t.Errorf("%s: got time of a reason that amdgpu does not give", c.name)
		}
	}
}

// runCard runs a source of AMD's alone, on synctest's clock.
func runCard(t *testing.T, root string) *fakeRun {
	t.Helper()
	return startSource(t.Context(), newSource(100*time.Millisecond, nil, &amdgpu{root: root}))
}

func TestBusyTimeOfCard(t *testing.T) {
	for content := range structures {
		synctest.Test(t, func(t *testing.T) {
			root := cardFiles(t, nil)
			fixture.Write(t, root, cardFolder+"gpu_metrics", tableAt(content, 0, .4))
			p := runCard(t, root)
			defer p.stop()
			time.Sleep(500 * time.Millisecond)
			power := -1.
			for i := range 20 {
				fixture.Write(t, root, cardFolder+"gpu_metrics", tableAt(content, uint64(i+1)*1000, .4))
				time.Sleep(time.Second)
			}
			share, averages := .4, content == 0
			if averages {
				share = .7
			}
			rows := p.take()
			first, last := rows[0], rows[len(rows)-1]
			for _, row := range rows {
				for _, d := range row.GPUDetails {
					power, _ = d.Values.Get(sample.GPUThrottledPower)
				}
			}
			g := last.GPUs[0]
			want := first.GPUs[0].Busy + time.Duration(float64(last.At.Mono-first.At.Mono)*share)
			if got := g.Busy; (got-want).Abs() > time.Millisecond || (g.Has&sample.AveragesBusy != 0) != averages ||
				g.Has&sample.LacksBusy != 0 || g.Period != time.Second || last.err != nil || want < 7*time.Second {
				t.Errorf("1.%d: got %+v after %v, %v, want busy for %v", content, g, last.At.Mono-first.At.Mono, last.err, want)
			}
			if content >= 6 && math.Abs(power-20./4) > .01 {
				t.Errorf("1.%d: got %v s with less power, want 5", content, power)
			}
			if content > 0 && (math.Abs(g.Power-400) > .1 || g.Has&sample.HasEnergy == 0) {
				t.Errorf("1.%d: got %v W by energy, want 400", content, g.Power)
			}
		})
	}
}

// A sum that was reset has no growth: the average counts, and says so.
func TestBusyTimeAfterReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := cardFiles(t, nil)
		_, c := theCard(t, root)
		time.Sleep(time.Second)
		for _, step := range []struct {
			ms   uint64
			want utilSample
		}{
			{5000, utilSample{kind: summed}}, {6000, utilSample{value: 40, kind: summed}},
			{20, utilSample{value: 70, kind: averaged}},
		} {
			fixture.Write(t, root, cardFolder+"gpu_metrics", tableAt(6, step.ms, .4))
			got, err := c.samples(0)
			if err != nil || len(got) != 1 || got[0].value != step.want.value || got[0].kind != step.want.kind {
				t.Errorf("after %d ms: got %+v and %v, want %+v", step.ms, got, err, step.want)
			}
			time.Sleep(time.Second)
		}
	})
}

// A table that stands still says nothing: there is an average, or busy time is not known.
func TestTableThatStands(t *testing.T) {
	for _, content := range []int{1, 3, 6, 8} {
		for percent, want := range map[string]sample.GPUFields{"70": sample.AveragesBusy, "": sample.LacksBusy} {
			synctest.Test(t, func(t *testing.T) {
				root := cardFiles(t, map[string]string{cardFolder + "gpu_metrics": string(tableAt(content, 1000, .4))})
				if percent == "" {
					if err := os.Remove(filepath.Join(root, cardFolder, "gpu_busy_percent")); err != nil {
						t.Fatal(err)
					}
				}
				p := runCard(t, root)
				defer p.stop()
				time.Sleep(20 * time.Second)
				rows := p.take()
				first, last := rows[len(rows)/2], rows[len(rows)-1]
				share := float64(last.GPUs[0].Busy-first.GPUs[0].Busy) / float64(last.At.Mono-first.At.Mono)
				if last.GPUs[0].Has&(sample.AveragesBusy|sample.LacksBusy) != want || percent != "" && math.Abs(share-.7) > .01 {
					t.Errorf("1.%d, average %q: got %+v, busy %.2f, want %b", content, percent, last.GPUs[0], share, want)
				}
			})
		}
	}
}

// A program that was stopped for long knows what the firmware summed meanwhile.
func TestSumOverAGap(t *testing.T) {
	for kind, want := range map[sampleKind]time.Duration{summed: 8 * time.Second, averaged: 800 * time.Millisecond} {
		var g deviceState
		g.busy.add(1, 0)
		g.busy.add(time.Second, 0)
		if g.adder(kind)(11*time.Second, .8); (g.busy.at(time.Hour) - want).Abs() > time.Microsecond {
			t.Errorf("kind %d: got %v of ten seconds, want %v", kind, g.busy.at(time.Hour), want)
		}
	}
}

func TestCardSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := cardFiles(t, map[string]string{"sys/class/kfd/kfd/proc/4711/vram_51234": "",
			cardFolder + "gpu_metrics": string(tableAt(6, 1000, .4)), "dev/kfd": "x"})
		other := "sys/class/drm/card3/device/"
		fixture.Write(t, root, other+"uevent", []byte("DRIVER=amdgpu\nPCI_ID=1002:7\nPCI_SLOT_NAME=0000:09:00.0\n"))
		fixture.Write(t, root, other+"gpu_metrics", tableAt(3, 1000, .4))
		p := runCard(t, root)
		defer p.stop()
		set := func(status string) { fixture.Write(t, root, cardFolder+"power/runtime_status", []byte(status)) }
		want := func(when string, status sample.GPUStatus) {
			t.Helper()
			synctest.Wait()
			got := p.last().GPUs
			if len(got) != 2 || got[0].Status != status || got[1].Status != sample.GPUWorks {
				t.Fatalf("%s: got %+v, want %q and one that works", when, got, status)
			}
		}
		time.Sleep(30 * time.Second)
		want("in use until a minute ago", sample.GPUWorks)
		time.Sleep(restAfter)
		want("unused", sample.GPUAsleep)
		if _, err := os.ReadFile(filepath.Join(root, "dev/kfd")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		want("a program has opened the device", sample.GPUWorks)
		set("suspended")
		time.Sleep(5 * time.Second)
		want("asleep", sample.GPUAsleep)
		set("active")
		time.Sleep(5 * time.Second)
		want("woken", sample.GPUWorks)
		time.Sleep(2 * restAfter)
		want("unused again", sample.GPUAsleep)
		fixture.Write(t, root, "sys/class/kfd/kfd/proc/4713/vram_51234", []byte("77"))
		time.Sleep(15 * time.Second)
		want("used", sample.GPUWorks)
		set("suspended")
		time.Sleep(5 * time.Second)
		want("used, and asleep", sample.GPUAsleep)
	})
}

// Both makers' GPUs are in each row, and one driver does not hold up the other.
func TestBothMakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := cardFiles(t, map[string]string{cardFolder + "gpu_metrics": string(tableAt(9-1, 1000, .4))})
		d := &fakeDriver{}
		g := d.gpu("a", 0.3)
		p := startSource(t.Context(), newSource(0, nil, d, &amdgpu{root: root}))
		defer p.stop()
		want := func(when string, statuses ...sample.GPUStatus) emittedRow {
			t.Helper()
			synctest.Wait()
			row := p.last()
			var got []sample.GPUStatus
			for _, g := range row.GPUs {
				got = append(got, g.Status)
			}
			if !slices.Equal(got, statuses) {
				t.Fatalf("%s: got %+v, want %q", when, row.GPUs, statuses)
			}
			return row
		}
		time.Sleep(5 * time.Second)
		row := want("both", sample.GPUWorks, sample.GPUWorks)
		if row.GPUs[0].Vendor != "" || row.GPUs[1].Vendor != "AMD" || row.GPUs[1].Driver != "6.12.0" ||
			row.GPUs[1].ID != cardID || row.GPUs[1].Temperature != 65 {
			t.Errorf("got %+v", row.GPUs)
		}
		var users []int
		for _, row := range p.take() {
			for _, u := range row.GPUProcesses {
				users = append(users, u.PID)
			}
		}
		if !slices.Contains(users, 7) || !slices.Contains(users, 4711) || slices.Contains(users, 4712) {
			t.Errorf("got users %v, want those of both", users)
		}
		hang := make(chan struct{})
		d.set(func() { g.wait = hang })
		time.Sleep(5 * time.Second)
		hung := want("NVIDIA's hangs", sample.GPUHung, sample.GPUWorks)
		time.Sleep(5 * time.Second)
		if later := p.last(); later.At.Mono-hung.At.Mono < 4*time.Second {
			t.Errorf("got rows for %v in 5 s, while a GPU hangs", later.At.Mono-hung.At.Mono)
		}
		d.set(func() { g.wait = nil })
		close(hang)
		time.Sleep(5 * time.Second)
		want("answers again", sample.GPUWorks, sample.GPUWorks)
		away := filepath.Join(root, "sys/class/drm/card1")
		if err := os.Rename(away, away+"~"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		want("the card is gone", sample.GPUWorks, sample.GPULost)
		if err := os.Rename(away+"~", filepath.Join(root, "sys/class/drm/card7")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		want("it has another number", sample.GPUWorks, sample.GPUWorks)
		if err := p.Release(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		want("released", sample.GPUReleased, sample.GPUReleased)
		time.Sleep(2 * time.Minute)
		want("read again", sample.GPUWorks, sample.GPUWorks)
		d.set(func() { d.openErr = codeDriverNotLoaded })
		time.Sleep(time.Minute)
		want("NVIDIA's driver is unloaded", sample.GPUUnknown, sample.GPUWorks)
	})
}

// The first row waits for a driver that takes long to list its GPUs, but not for ever.
func TestFirstRowOfBothMakers(t *testing.T) {
	for takes, want := range map[time.Duration]int{time.Second: 2, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeDriver{hangs: takes}
			d.gpu("a", 0.3)
			p := startSource(t.Context(), newSource(0, nil, d, &amdgpu{root: cardFiles(t, nil)}))
			defer func() {
				p.stop()
				time.Sleep(time.Minute) // the call that is under way
			}()
			began := sample.Now().Mono
			time.Sleep(2 * time.Second)
			if rows := p.take(); len(rows) == 0 || len(rows[0].GPUs) != want || rows[0].came-began > maxFirst+patience {
				t.Errorf("opening takes %v: got %+v, want a first row of %d GPUs", takes, rows, want)
			}
		})
	}
}

// Of two cards, one may have a table that is not known.
func TestCardOfAnUnknownVersion(t *testing.T) {
	root := cardFiles(t, map[string]string{cardFolder + "gpu_metrics": string(tableAt(8, 1000, .4))})
	const second = "sys/class/drm/card3/device/"
	fixture.Write(t, root, second+"uevent", []byte("DRIVER=amdgpu\nPCI_ID=1002:75A0\nPCI_SLOT_NAME=0000:05:00.0\n"))
	fixture.Write(t, root, second+"gpu_metrics", []byte{120, 0, 1, 9})
	found, _ := Probe(t.Context(), Options{Root: root, Library: "/nonexistent.so"})
	if got := found.Devices; len(got) != 2 || !got[0].Busy || got[0].Err != nil || got[1].Busy ||
		!strings.Contains(fmt.Sprint(got[1].Err), "its version 1.9 is not known") {
		t.Errorf("got %+v, want the first one read, and the version of the second", got)
	}
}

// An AMD GPU alone needs no driver of NVIDIA's, whose lack is reported only where its library was asked for.
func TestOneMakerAlone(t *testing.T) {
	for library, says := range map[string]string{"": "", "/nonexistent.so": "/nonexistent.so"} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{root: cardFiles(t, nil), mayLack: library == ""}
			d := &fakeDriver{openErr: fmt.Errorf("%w (%s)", ErrNoDriver, library)}
			p := startSource(t.Context(), newSource(0, m, d, &amdgpu{root: m.root}))
			defer p.stop()
			time.Sleep(5 * time.Second)
			said := ""
			for _, row := range p.take() {
				if len(row.GPUs) != 1 {
					t.Errorf("got %d GPUs, want 1", len(row.GPUs))
				}
				if row.err != nil {
					said += row.err.Error()
				}
			}
			if !strings.Contains(said, says) || (said == "") != (says == "") {
				t.Errorf("got %q, want %q", said, says)
			}
		})
	}
}

// A card whose files hang is hung, and is read again once they return. The program goes on.
func TestCardHangs(t *testing.T) {
	root := cardFiles(t, map[string]string{cardFolder + "power/control": "on"})
	pipe := filepath.Join(root, cardFolder, "gpu_metrics")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := runCard(t, root)
	defer p.stop()
	until := func(what string, is func(emittedRow) bool) {
		t.Helper()
		for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if slices.ContainsFunc(p.take(), is) {
				return
			}
			if time.Now().After(late) {
				t.Fatal(what + ": got no such row in a minute")
			}
		}
	}
	until("hung", func(row emittedRow) bool {
		return len(row.GPUs) == 1 && row.GPUs[0].Status == sample.GPUHung && row.err != nil &&
			strings.Contains(row.err.Error(), "hangs: the driver has not responded to ") &&
			strings.Contains(row.err.Error(), "look for amdgpu")
	})
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := p.Release(soon, time.Hour); !errors.Is(err, errNotClosed) {
		t.Errorf("got %v, want %v", err, errNotClosed)
	}
	if err := p.Release(t.Context(), 0); err != nil {
		t.Error(err)
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the read ends with this
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	until("read again", func(row emittedRow) bool { return row.GPUs[0].Status == sample.GPUWorks })
}

// Open files show who computes without the driver's list, and in another PID namespace.
func TestSearchUsers(t *testing.T) {
	root := cardFiles(t, map[string]string{"sys/class/kfd/kfd/proc/4711/vram_51234": ""})
	process := func(pid, file, info string) {
		folder := filepath.Join(root, "proc", pid)
		fixture.Write(t, root, "proc/"+pid+"/fdinfo/7", []byte(info))
		if err := os.MkdirAll(folder+"/fd", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, folder+"/fd/7"); err != nil {
			t.Fatal(err)
		}
	}
	const of = "drm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t3 KiB\n"
	process("10", "/dev/dri/renderD128", of+"drm-engine-compute:\t77 ns\n")
	process("11", "/dev/dri/renderD128", of+"drm-engine-gfx:\t77 ns\n")
	process("12", "/dev/dri/renderD128", strings.Replace(of, "amdgpu", "i915", 1)+"drm-engine-compute:\t77 ns\n")
	process("13", "/tmp/x", of+"drm-engine-compute:\t77 ns\n")
	process("14", "/dev/dri/renderD128", of+"drm-engine-compute:\t0 ns\n")
	if err := os.Symlink("/dev/kfd", filepath.Join(root, "proc/14/fd/8")); err != nil {
		t.Fatal(err)
	}
	a, _ := theCard(t, root)
	alone := sample.GPUProcess{GPU: cardID, PID: 10, Memory: 3 << 10, Has: true}
	if got := a.users(); !slices.Equal(got, []sample.GPUProcess{alone}) {
		t.Errorf("got %+v", got)
	}
	if err := os.MkdirAll(filepath.Join(root, "proc/self/ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pid:[4026532999]", filepath.Join(root, "proc/self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, root, "sys/class/kfd/kfd/proc/4711/vram_51234", []byte("5000"))
	if got := a.users(); !slices.Equal(got, []sample.GPUProcess{alone, {GPU: cardID, PID: 14}}) {
		t.Errorf("another namespace: got %+v", got)
	}
}

func TestProbeCard(t *testing.T) {
	for _, c := range []struct {
		table []byte
		says  string
		err   string
	}{
		{tableAt(8, 1, 0), "was not verified on a card", ""}, {tableAt(0, 1, 0), "an average at each second", ""},
		{[]byte{120, 0, 2, 3}, "that of an APU", ""},
		{[]byte{120, 0, 1, 9}, "an average at each second", "gpu_metrics: its version 1.9 is not known: update this program"},
	} {
		root := cardFiles(t, map[string]string{cardFolder + "gpu_metrics": string(c.table)})
		found, err := Probe(t.Context(), Options{Root: root, Library: "/nonexistent.so"})
		got := found.Devices
		if len(got) != 1 || !got[0].Busy || !strings.Contains(strings.Join(got[0].Notes, " "), c.says) ||
			!strings.Contains(fmt.Sprint(got[0].Err), c.err) || (got[0].Err != nil) != (c.err != "") ||
			!slices.Contains(got[0].Supported, "processes") || slices.Contains(got[0].Unsupported, "GPM") || err == nil {
			t.Errorf("got %+v and %v, want %q, %q", got, err, c.says, c.err)
		}
	}
	root := cardFiles(t, map[string]string{cardFolder + "power/runtime_status": "suspended\n"})
	if asleep, _ := Probe(t.Context(), Options{Root: root}); len(asleep.Devices) != 1 || !asleep.Devices[0].Asleep ||
		asleep.Devices[0].Supported != nil {
		t.Errorf("asleep: got %+v", asleep)
	}
}
