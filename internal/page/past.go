package page

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/store"
)

// Bounds of what is made of the store.
const (
	maxPastCurves = 400     // quantities of devices and jobs
	maxPastText   = 4 << 20 // bytes of windows, and of events
)

// Past has the curves, the windows and the events of a time, made of blocks of the store.
type Past struct {
	start   time.Time
	step    time.Duration
	points  int
	curves  map[curve]*means
	names   map[string]string // of GPUs, by ID
	windows newest
	events  newest
	sees    func(event, client string) bool
	without int // quantities that are not kept
}

// newest are the last entries that were added.
type newest struct {
	entries []store.Entry
	most    int // entries that are kept
	text    int // bytes of them
	left    int // entries that are not kept
}

func (n *newest) add(e store.Entry) {
	n.entries, n.text = append(n.entries, e), n.text+len(e.Text)
	for len(n.entries) > n.most || n.text > maxPastText {
		n.text -= len(n.entries[0].Text)
		n.entries, n.left = slices.Delete(n.entries, 0, 1), n.left+1
	}
}

// curve names one quantity of a device or job.
type curve struct {
	of           store.Kind
	id, quantity string
}

// means are weighted sums for each interval. 32 bits are enough for the four digits that are shown.
type means struct{ sum, weight []float32 }

// readTime and writeTime are quantities of our own: the seconds of all operations in a second.
const (
	readTime  = "read_time"
	writeTime = "write_time"
)

// NewPast returns an empty past: so many intervals from a time on, and so many windows at most. sees says which events
// it takes, by their name and whose window they are about.
func NewPast(start time.Time, step time.Duration, points, windows int, sees func(event, client string) bool) *Past {
	return &Past{
		start: start, step: step, points: points, curves: map[curve]*means{}, names: map[string]string{},
		windows: newest{most: windows}, events: newest{most: MaxPastEvents}, sees: sees,
	}
}

// shown are the quantities of the store that have a curve.
var shown = map[store.Kind][]string{
	store.Machine: {store.Cores, store.IOSome, store.IOFull, store.Storage, store.CPU},
	store.GPU:     {store.Busy, store.SMActive, store.Power, store.Temperature, store.MemoryUsed},
	store.Disk: {
		store.ReadBytes, store.WriteBytes, store.Reads, store.Writes, store.ReadAwait, store.WriteAwait, store.Queue,
	},
	store.Job: {store.Busy, store.Storage, store.CPU, store.NoCore, store.Cores},
}

// Add adds a block.
func (p *Past) Add(item *store.Item) {
	for _, e := range item.Entries {
		switch {
		case !e.At.After(p.start):
		case e.Kind == store.Window:
			p.windows.add(e)
		case e.At.Before(p.start.Add(time.Duration(p.points) * p.step)):
			var event struct {
				Name string `json:"name"`
			}
			if json.Unmarshal(e.Text, &event) == nil && p.sees(event.Name, e.Client) {
				p.events.add(e)
			}
		}
	}
	if item.Rows == nil {
		return
	}
	for c, column := range item.Rows.Columns {
		if slices.Contains(shown[column.Of], column.Quantity) {
			p.addColumn(item.Rows, c)
		}
	}
}

func (p *Past) addColumn(rows *store.Rows, c int) {
	column := rows.Columns[c]
	key := curve{column.Of, column.ID, column.Quantity}
	var weights []float64 // of the mean of operations
	switch column.Quantity {
	case store.ReadAwait:
		key.quantity, weights = readTime, valuesOf(rows, column.ID, store.Reads)
	case store.WriteAwait:
		key.quantity, weights = writeTime, valuesOf(rows, column.ID, store.Writes)
	}
	into := p.curves[key]
	if into == nil {
		if len(p.curves) >= maxPastCurves {
			p.without++
			return
		}
		into = &means{make([]float32, p.points), make([]float32, p.points)}
		p.curves[key] = into
	}
	if column.Of == store.GPU {
		p.names[column.ID] = column.Name
	}
	for i, start := range rows.Starts {
		v := rows.Values[c][i]
		if weights != nil {
			v *= weights[i]
		}
		if !math.IsNaN(v) {
			p.spread(into, time.Unix(start, 0).Sub(p.start), rows.Length, v)
		}
	}
}

// valuesOf are the values of another quantity of the same disk, or nil.
func valuesOf(rows *store.Rows, disk, quantity string) []float64 {
	at := slices.IndexFunc(rows.Columns, func(c store.Column) bool {
		return c.Of == store.Disk && c.ID == disk && c.Quantity == quantity
	})
	if at < 0 {
		return nil
	}
	return rows.Values[at]
}

// spread adds a mean to all intervals that it covers, each by its share.
func (p *Past) spread(into *means, start, length time.Duration, v float64) {
	end := start + length
	first := max(0, int(start/p.step))
	for i := first; i < p.points && time.Duration(i)*p.step < end; i++ {
		from := time.Duration(i) * p.step
		shared := min(end, from+p.step) - max(start, from)
		if shared <= 0 {
			continue
		}
		into.sum[i] += float32(v * shared.Seconds())
		into.weight[i] += float32(shared.Seconds())
	}
}

// value is a mean of interval i; NaN if it is not known.
func (p *Past) value(of store.Kind, id, quantity string, i int) float64 {
	m := p.curves[curve{of, id, quantity}]
	if m == nil || m.weight[i] == 0 {
		return math.NaN()
	}
	return float64(m.sum[i] / m.weight[i])
}

// devices are the IDs that have a quantity.
func (p *Past) devices(of store.Kind, quantity string) (ids []string) {
	for c := range p.curves {
		if c.of == of && c.quantity == quantity {
			ids = append(ids, c.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// stored says where the store has what the history in memory has.
var stored = map[history.Series]struct {
	of       store.Kind
	quantity string
}{
	history.GPUBusyTime:     {store.GPU, store.Busy},
	history.DiskReadIOs:     {store.Disk, store.Reads},
	history.DiskWriteIOs:    {store.Disk, store.Writes},
	history.DiskReadBytes:   {store.Disk, store.ReadBytes},
	history.DiskWriteBytes:  {store.Disk, store.WriteBytes},
	history.DiskReadTicks:   {store.Disk, readTime},
	history.DiskWriteTicks:  {store.Disk, writeTime},
	history.DiskTimeInQueue: {store.Disk, store.Queue},
	history.IOSome:          {store.Machine, store.IOSome},
	history.IOFull:          {store.Machine, store.IOFull},
	history.HostCPUTime:     {store.Machine, store.Cores},
	history.JobCPUTime:      {store.Job, store.Cores},
	history.LedgerBusy:      {store.Job, store.Busy},
	history.LedgerStorage:   {store.Job, store.Storage},
	history.LedgerCPU:       {store.Job, store.CPU},
	history.LedgerReady:     {store.Job, store.NoCore},
}

// storedDetails says the same of the details of GPUs.
var storedDetails = map[history.Detail]string{
	history.SMActive: store.SMActive, history.Power: store.Power, history.Temperature: store.Temperature,
	history.MemoryUsed: store.MemoryUsed,
}

// someGPU is the GPU of ledgers in the store, which are means over the GPUs of a job.
const someGPU = "all"

// known are the IDs that a quantity has in the history in memory, for what the store has.
func (p *Past) known(s history.Series) []string {
	if p == nil {
		return nil
	}
	if s != history.LedgerBusy {
		return p.devices(stored[s].of, stored[s].quantity)
	}
	gpu := ""
	if len(p.names) > 0 {
		gpu = someGPU
	}
	var ids []string
	for _, of := range []store.Kind{store.Machine, store.Job} {
		for _, job := range p.devices(of, store.Storage) {
			ids = append(ids, ledger.ID(job, gpu))
		}
	}
	return ids
}

// rate is the growth of a quantity in interval i, in a second; NaN if it is not known.
func (p *Past) rate(s history.Series, id string, i int) float64 {
	where := stored[s]
	switch s {
	case history.LedgerBusy, history.LedgerStorage, history.LedgerCPU, history.LedgerReady:
		job, _, _ := strings.Cut(id, "\x00")
		if id = job; job == "" {
			return p.machineLedger(s, where.quantity, i)
		}
	}
	return p.value(where.of, id, where.quantity, i)
}

// machineLedger is a part of the ledger of the whole machine. The store has its busy part as that of the GPUs.
func (p *Past) machineLedger(s history.Series, quantity string, i int) float64 {
	if s != history.LedgerBusy {
		return p.value(store.Machine, "", quantity, i)
	}
	sum, gpus := 0.0, 0
	for id := range p.names {
		if v := p.value(store.GPU, id, store.Busy, i); !math.IsNaN(v) {
			sum, gpus = sum+v, gpus+1
		}
	}
	switch {
	case len(p.names) == 0 && !math.IsNaN(p.value(store.Machine, "", store.Storage, i)):
		return 0 // a machine without a GPU
	case gpus == 0:
		return math.NaN()
	}
	return sum / float64(gpus)
}

// Windows places the windows on a time axis that begins at a time of the wall clock. left are those that have no room.
func (p *Past) Windows(origin time.Time) (placed []Window, left int) {
	slices.SortStableFunc(p.windows.entries, func(a, b store.Entry) int { return a.At.Compare(b.At) })
	placed = make([]Window, 0, len(p.windows.entries))
	for _, e := range p.windows.entries {
		r := &explain.Report{}
		if json.Unmarshal(e.Text, r) != nil {
			continue // of a later version
		}
		placed = append(placed, Window{Start: r.Start.Sub(origin).Seconds(), Label: r.Label(), Report: r})
	}
	return placed, p.windows.left
}

// Events places the events as Windows does. gpu names a GPU by its ID.
func (p *Past) Events(origin time.Time, gpu func(id string) string) (placed []Event, left int) {
	for _, e := range p.events.entries {
		if placedEvent, ok := NewEvent(e.Text, origin, gpu); ok {
			placed = append(placed, placedEvent)
		}
	}
	return placed, p.events.left
}

// Crowded reports whether there was no room for a quantity.
func (p *Past) Crowded() bool { return p.without > 0 }

// gpuName is a GPU's name in the store, or its ID.
func (p *Past) gpuName(id string) string {
	if p == nil {
		return id
	}
	return cmp.Or(p.names[id], id)
}
