package gpu

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// allDetails returns the details of a GPU that supports every query, with the driver's own counters of throttle time.
func allDetails() *fakeDetails {
	t := &fakeDetails{fields: map[uint32]func() answer{}, values: map[quantity]func() float64{},
		gpm: map[uint32]func(time.Duration) float64{}}
	for _, p := range rows {
		switch p.call {
		case callFields:
			t.fields[p.id] = constant(50)
		case callGPM:
			t.gpm[p.id] = func(time.Duration) float64 { return 25 }
		default:
			t.values[p.quantity] = func() float64 { return 1 }
		}
	}
	return t
}

// details returns the details of one GPU.
func details(rows []emittedRow, gpu string) (list []sample.GPUDetail) {
	for _, row := range rows {
		for _, d := range row.GPUDetails {
			if d.GPU == gpu {
				list = append(list, d)
			}
		}
	}
	return list
}

func value(t *testing.T, d sample.GPUDetail, q sample.GPUQuantity) float64 {
	t.Helper()
	value, ok := d.Values.Get(q)
	if !ok {
		t.Errorf("%v: got no value, want one", q)
	}
	return value
}

func TestCadences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 0.5).details = allDetails()
		p := startRun(t.Context(), d)
		time.Sleep(time.Second / 2)
		first := d.counted()
		own := map[string]bool{callSamples: true, callProcesses: true, callViolation: true}
		for call := range (&fakeGPU{d: d}).gauges() {
			own[call] = true // not counted
		}
		for _, s := range calls {
			if call := rows[s.from].call; nvidia.asks(rows[s.from]) && own[call] == (first[call] > 0) {
				t.Errorf("first reading: got %d calls of %s, want called: %v", first[call], call, !own[call])
			}
		}
		time.Sleep(60 * time.Second)
		p.stop()
		most := 0
		for call, want := range map[string][2]int{
			"nvmlDeviceGetFieldValues": {55, 62}, "nvmlGpmSampleGet": {55, 62}, "nvmlDeviceGetClockInfo": {55, 62},
			"nvmlDeviceGetEncoderUtilization": {55, 62}, "nvmlDeviceGetFanSpeed": {5, 7},
			"nvmlDeviceGetTotalEccErrors":     {10, 14},
			"nvmlDeviceGetEnforcedPowerLimit": {5, 7}, "nvmlDeviceGetRemappedRows": {5, 7}, "nvmlDeviceGetRetiredPages": {5, 7},
			"nvmlDeviceGetTemperatureThreshold": {0, 0}, "nvmlDeviceRegisterEvents": {0, 0},
			"nvmlDeviceGetViolationStatus":           {0, 0},
			"nvmlDeviceGetCurrentClocksEventReasons": {0, 0}} {
			got := d.counts[call]
			if got < want[0] || got > want[1] {
				t.Errorf("%s: got %d calls in 60 s, want %v", call, got, want)
			}
			most = max(most, got)
		}
		rows := p.take()
		checkRows(t, rows)
		list := details(rows, "a")
		if len(list) < 55 || len(list) > 63 {
			t.Fatalf("got %d details in 60 s, want 55 to 63", len(list))
		}
		for i, d := range list {
			if i > 0 && d.At-list[i-1].At < 900*time.Millisecond {
				t.Errorf("got details after %v, want at least 900ms", d.At-list[i-1].At)
			}
		}
		n := 0
		for range list[2].Values.All() {
			n++
		}
		if want := int(sample.GPUQuantities) - 2; n != want { // all except the PCIe rates, whose counters are known
			t.Errorf("got %d quantities, want %d", n, want)
		}
	})
}

// Each reading after the first makes at most one of the rotating queries.
func TestRotatingQueries(t *testing.T) {
	a := newDeviceReader(&fakeGPU{uuid: "a"})
	a.initialized = true
	seen := map[string]int{}
	for a.rotation = range rotations {
		n := 0
		for i, p := range rows {
			special := p.call == callFields || p.call == callProcesses || p.quantity == energyCounter
			apart := nvidia.asks(p) && p.period == slow && !special && p.traits&together == 0
			if apart && a.isDue(&p, i, request{}, &reading{}) {
				seen[p.call+strconv.Itoa(int(p.id))]++
				n++
			}
		}
		if n > 1 {
			t.Errorf("reading %d: got %d rotating queries, want at most 1", a.rotation, n)
		}
	}
	for q, n := range seen {
		if n != 1 || len(seen) != 7 {
			t.Errorf("%v: got %d calls, want 1 for each of 7 rows, there are %d", q, n, len(seen))
		}
	}
}

func TestUnsupportedQueriesAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("a", 0.5)
		p := startRun(t.Context(), d)
		time.Sleep(30 * time.Second)
		p.stop()
		for call, n := range d.counts {
			if n > strings.Count("nvmlDeviceGetClockInfo nvmlDeviceGetViolationStatus nvmlDeviceGetTemperatureThreshold "+
				"nvmlDeviceGetTotalEccErrors", call)*4+1 {
				t.Errorf("%s: got %d calls, want one for each query", call, n)
			}
		}
		for _, row := range p.take() {
			if row.err != nil {
				t.Errorf("got error %v, want none", row.err)
			}
		}
	})
}

func TestGarbageInDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		g.details = allDetails()
		bad := false
		good := g.details.fields[74]
		g.details.fields[74] = func() answer { // grows by 0.1 s a second
			if bad {
				return answer{number: 808334905e9}
			}
			f := good()
			f.number = 1e8 * time.Since(g.began).Seconds()
			return f
		}
		g.details.gpm[5] = func(time.Duration) float64 {
			if bad {
				return math.NaN()
			}
			return 100.5
		}
		g.details.values[sample.GPUClockSM] = func() float64 {
			if bad {
				return 808334905e6
			}
			return 1e9
		}
		p := startRun(t.Context(), d)
		time.Sleep(5*time.Second + 350*time.Millisecond) // between two readings
		d.set(func() { bad = true })
		time.Sleep(2 * time.Second)
		d.set(func() { bad = false })
		time.Sleep(5 * time.Second)
		p.stop()
		rows := p.take()
		list := details(rows, "a")
		missing := 0
		for _, d := range list[2:] {
			tensor, ok := d.Values.Get(sample.GPUTensorActive)
			_, clock := d.Values.Get(sample.GPUClockSM)
			throttled, counts := d.Values.Get(sample.GPUThrottledPower)
			if ok != clock || ok != counts || tensor > 1 || throttled > 100 {
				t.Errorf("got %+v, want all of tensor, clock and throttle time in range, or none", d)
			}
			if !ok {
				missing++
			}
		}
		if missing < 1 || missing > 3 {
			t.Errorf("got %d readings without values, want 1 to 3", missing)
		}
		var stats *sample.DriverUse
		errorText := ""
		for _, row := range rows {
			if row.DriverUse != nil {
				stats = row.DriverUse
			}
			if row.err != nil {
				errorText += row.err.Error()
			}
		}
		if stats == nil || stats.Dropped != uint64(3*missing) || !strings.Contains(errorText, "of clock_sm") {
			t.Errorf("got %+v and errors %q, want %d dropped values and clock_sm", stats, errorText, 3*missing)
		}
	})
}

func TestXIDCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a := d.gpu("a", 0.5)
		b := d.gpu("b", 0.5)
		a.details, b.details = allDetails(), allDetails()
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		d.set(func() {
			d.xids = []xidEvent{{"a", 31}, {"b", 13}, {"a", 13}, {"a", 31}, {"none", 13}, {"a", 808334905}}
		})
		time.Sleep(3 * time.Second)
		list := details(p.take(), "a")
		early := list[len(list)-1].XIDs
		if !slices.Equal(early, []sample.XID{{Code: 13, Count: 1}, {Code: 31, Count: 2}}) {
			t.Errorf("got %+v, want 13 once and 31 twice", early)
		}
		d.set(func() {
			d.xids = []xidEvent{{"a", 79}}
			a.err, d.eventErr = codeLost, codeLost
			d.listed = d.listed[1:]
		})
		time.Sleep(5 * time.Second)
		rows := p.take()
		list = details(rows, "a")
		last := list[len(list)-1]
		want := []sample.XID{{Code: 13, Count: 1}, {Code: 31, Count: 2}, {Code: 79, Count: 1}}
		if !slices.Equal(last.XIDs, want) || p.lastOf(rows).GPUs[0].Status != sample.GPULost || len(early) != 2 {
			t.Errorf("got %+v of %+v, want %+v of a lost GPU", last, p.lastOf(rows).GPUs, want)
		}
		if _, ok := last.Values.Get(sample.GPUClockSM); ok {
			t.Error("got a clock of a lost GPU, want none")
		}
		d.set(func() { a.err, d.eventErr = nil, nil; d.listed = append(d.listed, a); a.details.watched = false })
		time.Sleep(70 * time.Second)
		p.stop()
		list = details(p.take(), "a")
		if last := list[len(list)-1]; !slices.Equal(last.XIDs, want) || !a.details.watched {
			t.Errorf("returned: got %+v, registered %v, want %+v, true", last.XIDs, a.details.watched, want)
		}
	})
}

func (p *fakeRun) lastOf(rows []emittedRow) emittedRow { return rows[len(rows)-1] }

func TestMIGQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		d.gpu("GPU-a", 0.5).details = allDetails()
		s := d.gpu("MIG-a", 0.5)
		s.bare, s.parentGPU, s.details = true, "GPU-a", allDetails()
		s.details.errs = map[string]error{callFields: codeLost, "nvmlDeviceGetFanSpeed": codeLost, callEvents: codeLost}
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		last := p.last()
		g := last.GPUs[1]
		if g.Parent != "GPU-a" || g.Status != "" || g.MemoryTotal != 2 || g.Has&sample.HasTemperature != 0 {
			t.Errorf("got %+v, want a working MIG device of GPU-a with memory and no temperature", g)
		}
		list := details(p.take(), "MIG-a")
		if got := value(t, list[len(list)-1], sample.GPUSMActive); got != 0.25 {
			t.Errorf("got SM activity %v, want 0.25", got)
		}
		d.set(func() { s.err = codeLost; d.listed = d.listed[:1] })
		time.Sleep(5 * time.Second)
		p.stop()
		if last := p.lastOf(p.take()); len(last.GPUs) != 1 {
			t.Errorf("got %+v, want no row of a destroyed MIG device", last.GPUs)
		}
	})
}

func TestNoPermissionIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		g.details = allDetails()
		g.details.errs = map[string]error{callGPM: codeNoPermission}
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Minute)
		p.stop()
		said := 0
		for _, row := range p.take() {
			if errors.Is(row.err, codeNoPermission) {
				said++
			}
		}
		if said != 1 || d.counts["nvmlGpmSampleGet"] != 1 {
			t.Errorf("got %d reports of %d calls, want one each", said, d.counts["nvmlGpmSampleGet"])
		}
	})
}

// Quantities that a device no longer supports, such as after MIG was enabled, are dropped.
func TestQuantitiesThatBecomeUnsupported(t *testing.T) {
	d := &fakeDriver{}
	g := d.gpu("a", 0.5)
	g.details = allDetails()
	a := newDeviceReader(g)
	look := func(n int) {
		r := nth(n)
		a.readAll(request{}, r)
	}
	look(0)
	look(1)
	lost := map[uint32]sample.GPUQuantity{82: sample.GPUTemperatureMemory, 5: sample.GPUTensorActive}
	for id, q := range lost {
		if _, ok := a.values.Get(q); !ok {
			t.Fatalf("%v: got no value at first, want one", q)
		}
		delete(g.details.fields, id)
		delete(g.details.gpm, id)
	}
	delete(g.details.gpm, 60) // NVLink, which field values provide
	look(2)
	for _, q := range lost {
		if value, ok := a.values.Get(q); ok {
			t.Errorf("%v: got %v, want no value", q, value)
		}
	}
	for _, q := range []sample.GPUQuantity{
		sample.GPUSMActive, sample.GPUNVLinkReceived, sample.GPUPCIeReceived, sample.GPUThrottledThermal,
	} {
		if _, ok := a.values.Get(q); !ok {
			t.Errorf("%v: got no value, want one", q)
		}
	}
}
