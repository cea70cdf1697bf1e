package past

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
)

// Bounds of what has columns. Further devices have none.
const (
	maxDisks = 128
	maxGPUs  = 64
	maxJobs  = 64
)

// second is the grid on which the lowest and the highest value of an interval are found.
const second = time.Second

// quantities has the quantities of each kind, in the order of store.Quantities.
var quantities = func() map[store.Kind][]store.Quantity {
	all := map[store.Kind][]store.Quantity{}
	for _, q := range store.Quantities {
		all[q.Of] = append(all[q.Of], q)
	}
	return all
}()

// curves are the values of a group in one interval.
type curves struct {
	columns []store.Column
	values  []float64
}

// add adds a device with its values by the name of the quantity. What is missing there is not known.
func (c *curves) add(of store.Kind, id, name string, values map[string]float64) {
	for _, q := range quantities[of] {
		v, known := values[q.Name]
		if !known {
			v = math.NaN()
		}
		c.columns = append(c.columns, store.Column{Of: of, ID: id, Name: name, Quantity: q.Name, Step: q.Step})
		c.values = append(c.values, v)
	}
}

// interval makes the curves of one interval from a history.
type interval struct {
	from       *history.History
	start, end time.Duration // on the monotonic clock
}

func (i *interval) devices() (c curves) {
	c.add(store.Machine, "", "", i.machine())
	gpus := i.ids(history.GPUBusyTime, maxGPUs)
	for _, id := range gpus {
		c.add(store.GPU, id, i.gpuName(id), i.gpu(id))
	}
	for _, id := range i.ids(history.DiskReadIOs, maxDisks) {
		c.add(store.Disk, id, id, i.disk(id))
	}
	return c
}

func (i *interval) jobs() (c curves) {
	for _, id := range i.ids(history.JobCPUTime, maxJobs) {
		values := i.ledger(id)
		set(values, store.Cores, i.mean(history.JobCPUTime, id))
		set(values, store.ReadBytes, i.mean(history.JobReadBytes, id))
		set(values, store.WriteBytes, i.mean(history.JobWriteBytes, id))
		c.add(store.Job, id, "", values)
	}
	return c
}

// ids are the first devices that are there now, sorted.
func (i *interval) ids(s history.Series, most int) []string {
	ids := i.from.IDs(s)
	slices.Sort(ids)
	return ids[:min(len(ids), most)]
}

// gpuName is how people name a GPU, where its number is known.
func (i *interval) gpuName(id string) string {
	if limits, known := i.from.LimitsOf(id); known {
		return limits.Name()
	}
	return ""
}

// use is the growth of a quantity in each second: the mean rate, and the lowest and the highest one.
type use struct {
	sum, low, high float64
	known          int // seconds
}

func (u *use) add(rate float64) {
	if u.known == 0 {
		u.low, u.high = rate, rate
	}
	u.sum, u.low, u.high = u.sum+rate, min(u.low, rate), max(u.high, rate)
	u.known++
}

func (u *use) mean() float64 {
	if u.known == 0 {
		return math.NaN()
	}
	return u.sum / float64(u.known)
}

func set(values map[string]float64, name string, v float64) {
	if !math.IsNaN(v) {
		values[name] = v
	}
}

// set stores the mean and, with names for them, the lowest and the highest value.
func (u *use) set(values map[string]float64, mean, low, high string) {
	if u.known == 0 {
		return
	}
	values[mean] = u.mean()
	if low != "" {
		values[low] = u.low
	}
	if high != "" {
		values[high] = u.high
	}
}

// each calls take with the growth of the first len(all) quantities of a device in each second that is known.
func (i *interval) each(first history.Series, id string, all []history.Delta, take func()) {
	for at := i.start; at < i.end; at += second {
		ok := i.from.BetweenAll(first, id, history.Point{At: at}, history.Point{At: at + second}, all)
		if ok && !slices.ContainsFunc(all, func(d history.Delta) bool { return d.Reset }) {
			take()
		}
	}
}

// mean is the mean rate of a quantity; NaN if it is not known.
func (i *interval) mean(s history.Series, id string) float64 {
	d, ok := i.from.Between(history.Key{Series: s, ID: id}, history.Point{At: i.start}, history.Point{At: i.end})
	if !ok || d.Reset {
		return math.NaN()
	}
	return d.Value / (i.end - i.start).Seconds()
}

func (i *interval) machine() map[string]float64 {
	values := i.ledger("")
	delete(values, store.Busy) // that of each GPU says more
	set(values, store.Cores, i.mean(history.HostCPUTime, ""))
	set(values, store.BusiestCore, i.mean(history.HostBusiestCore, ""))
	set(values, store.IOSome, i.mean(history.IOSome, ""))
	set(values, store.IOFull, i.mean(history.IOFull, ""))
	return values
}

// Columns of a disk in the history, from history.DiskReadIOs on.
const (
	reads = iota
	readBytes
	readTime
	writes
	writeBytes
	writeTime
	working
	inQueue
	diskColumns
)

func (i *interval) disk(id string) map[string]float64 {
	var all [diskColumns]history.Delta
	var sums [diskColumns]use
	var readAwait, writeAwait use
	i.each(history.DiskReadIOs, id, all[:], func() {
		for c := range all {
			sums[c].add(all[c].Value)
		}
		if n := all[reads].Value; n > 0 {
			readAwait.add(all[readTime].Value / n)
		}
		if n := all[writes].Value; n > 0 {
			writeAwait.add(all[writeTime].Value / n)
		}
	})
	values := map[string]float64{}
	sums[reads].set(values, store.Reads, "", "")
	sums[writes].set(values, store.Writes, "", "")
	sums[readBytes].set(values, store.ReadBytes, "", store.ReadBytesMax)
	sums[writeBytes].set(values, store.WriteBytes, "", store.WriteBytesMax)
	known := time.Duration(sums[working].known) * second
	if known == 0 {
		return values
	}
	seconds := func(c int) time.Duration { return time.Duration(sums[c].sum * float64(time.Second)) }
	d := sample.NewDiskDelta(sample.Disk{
		ReadIOs: uint64(math.Round(sums[reads].sum)), ReadTicks: seconds(readTime),
		WriteIOs: uint64(math.Round(sums[writes].sum)), WriteTicks: seconds(writeTime),
		IOTicks: seconds(working), TimeInQueue: seconds(inQueue),
	}, known, 0)
	if _, ok := d.QueueDepth(); ok {
		sums[inQueue].set(values, store.Queue, "", store.QueueMax)
	}
	if ratio, ok := d.Utilization(); ok {
		values[store.Utilization] = ratio
	}
	if readAwait.known > 0 && d.Has&sample.LacksReadTime == 0 {
		readAwait.set(values, store.ReadAwait, "", store.ReadAwaitMax)
		values[store.ReadAwait] = sums[readTime].sum / sums[reads].sum // the mean of operations, not of seconds
	}
	if writeAwait.known > 0 && d.Has&sample.LacksWriteTime == 0 {
		writeAwait.set(values, store.WriteAwait, "", store.WriteAwaitMax)
		values[store.WriteAwait] = sums[writeTime].sum / sums[writes].sum
	}
	return values
}

func (i *interval) gpu(id string) map[string]float64 {
	values := map[string]float64{}
	var busy use
	var all [1]history.Delta
	i.each(history.GPUBusyTime, id, all[:], func() { busy.add(all[0].Value) })
	busy.set(values, store.Busy, store.BusyMin, store.BusyMax)
	means := i.from.Means(id, i.start, i.end)
	for d, name := range map[history.Detail]string{
		history.SMActive: store.SMActive, history.TensorActive: store.TensorActive, history.Power: store.Power,
		history.Temperature: store.Temperature, history.MemoryUsed: store.MemoryUsed, history.SMClock: store.SMClock,
	} {
		if v, ok := means.Get(d); ok {
			values[name] = v
		}
	}
	for d := history.ThrottledPower; d < history.Details; d++ {
		if v, ok := means.Get(d); ok {
			values[store.Throttled] += v
		}
	}
	if _, ok := means.Get(history.Power); !ok {
		return values
	}
	var power use
	for at := i.start; at < i.end; at += second {
		means := i.from.Means(id, at, at+second)
		if v, ok := means.Get(history.Power); ok {
			power.add(v)
		}
	}
	if power.known > 0 {
		values[store.PowerMax] = power.high
	}
	return values
}

// ledger is the mean ledger of a job over its GPUs; of the whole machine for "".
func (i *interval) ledger(job string) map[string]float64 {
	sums := [4]use{}
	var all [3]history.Delta
	ids := slices.DeleteFunc(i.from.IDs(history.LedgerBusy), func(id string) bool {
		of, _, _ := strings.Cut(id, "\x00")
		return of != job
	})
	if len(ids) > 1 { // the ledger without a GPU is of the time before one was used
		ids = slices.DeleteFunc(ids, func(id string) bool { return strings.HasSuffix(id, "\x00") })
	}
	for _, id := range ids {
		if i.from.BetweenAll(history.LedgerBusy, id, history.Point{At: i.start}, history.Point{At: i.end}, all[:]) {
			for c := range all {
				sums[c].add(all[c].Value / (i.end - i.start).Seconds())
			}
		}
		if ready := i.mean(history.LedgerReady, id); !math.IsNaN(ready) {
			sums[3].add(ready)
		}
	}
	values := map[string]float64{}
	for c, name := range []string{store.Busy, store.Storage, store.CPU, store.NoCore} {
		sums[c].set(values, name, "", "")
	}
	return values
}
