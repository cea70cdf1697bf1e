package window

import (
	"encoding/json"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// The JSON form of a report, as docs/report.md describes it. Times are seconds, sizes bytes, ratios 0 to 1; a pointer
// is nil, and its key absent, where a quantity is not known.
type reportJSON struct {
	ID               string        `json:"id,omitempty"`
	Kind             Kind          `json:"kind"`
	Name             string        `json:"name,omitempty"`
	Model            string        `json:"model,omitempty"`
	Epoch            *int          `json:"epoch,omitempty"`
	Source           Source        `json:"source,omitempty"`
	Scope            Scope         `json:"scope,omitempty"`
	Unfinished       bool          `json:"unfinished,omitempty"`
	Start            time.Time     `json:"start"`
	End              time.Time     `json:"end"`
	Duration         float64       `json:"duration_s"`
	GPU              *gpuJSON      `json:"gpu,omitempty"`
	Process          *processJSON  `json:"process,omitempty"`
	Stall            *stallJSON    `json:"stall,omitempty"`
	Verdict          Verdict       `json:"verdict"`
	Finding          string        `json:"finding"`
	Remedy           string        `json:"remedy"`
	Findings         []findingJSON `json:"findings,omitempty"`
	Slow             bool          `json:"slow"`
	SlownessReason   string        `json:"slowness_reason,omitempty"`
	Recent           *recentJSON   `json:"recent,omitempty"`
	Baseline         *baselineJSON `json:"baseline,omitempty"`
	SpeedupBound     *float64      `json:"speedup_bound,omitempty"`
	Load             *loadJSON     `json:"load,omitempty"`
	Disks            []diskJSON    `json:"disks,omitempty"`
	OtherReaders     int           `json:"windows_on_its_disks,omitempty"`
	Mounts           []mountJSON   `json:"mounts,omitempty"`
	Pressure         *pressureJSON `json:"pressure,omitempty"`
	StorageStalls    []stretchJSON `json:"storage_stalls,omitempty"`
	UncertaintyRatio *float64      `json:"uncertainty_ratio,omitempty"`
	Interrupted      bool          `json:"interrupted,omitempty"`
}

type recentJSON struct {
	Duration float64 `json:"duration_s"`
	Verdict  Verdict `json:"verdict"`
	Finding  string  `json:"finding"`
}

type baselineJSON struct {
	Median float64 `json:"median_s"`
	P95    float64 `json:"p95_s"`
	Count  int     `json:"count"`
}

type gpuJSON struct {
	IDs       []string  `json:"ids"`
	Busy      float64   `json:"busy_s"`
	BusyRatio float64   `json:"busy_ratio"`
	Devices   []useJSON `json:"devices,omitempty"`
}

type processJSON struct {
	OnCPU float64 `json:"on_cpu_s"`
}

type stallJSON struct {
	Storage float64  `json:"storage_s"`
	CPU     *float64 `json:"cpu_s,omitempty"`
	Other   float64  `json:"other_s"`
}

type diskJSON struct {
	Name            string   `json:"name"`
	ReadBytes       uint64   `json:"read_bytes"`
	ReadOperations  uint64   `json:"read_operations"`
	ReadAwait       *float64 `json:"read_await_s,omitempty"`
	WriteBytes      uint64   `json:"write_bytes"`
	WriteOperations uint64   `json:"write_operations"`
	WriteAwait      *float64 `json:"write_await_s,omitempty"`
	QueueDepth      float64  `json:"queue_depth"`
	BusyRatio       float64  `json:"busy_ratio"`
	UnderPath       bool     `json:"under_path,omitempty"`
	*ceilingJSON
}

type mountJSON struct {
	Point  string `json:"point"`
	Type   string `json:"type"`
	Source string `json:"source"`
}

type pressureJSON struct {
	Some float64 `json:"io_some_s"`
	Full float64 `json:"io_full_s"`
}

type stretchJSON struct {
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_s"`
}

// MarshalJSON writes the report as docs/report.md describes it.
func (r *Report) MarshalJSON() ([]byte, error) {
	out := reportJSON{
		ID: r.ID, Kind: r.Kind, Name: r.Name, Model: r.Model, Source: r.Source, Scope: r.Scope, Unfinished: r.Unfinished,
		Start: r.Start.Wall, End: r.Start.Wall.Add(r.Duration()), Duration: r.Duration().Seconds(),
		Verdict: r.Verdict, Finding: r.Finding, Remedy: r.Remedy,
		Slow: r.Slow, SlownessReason: r.SlowReason, Interrupted: r.Interrupted,
	}
	if r.HasEpoch {
		out.Epoch = &r.Epoch
	}
	if r.Split {
		out.ledger(r)
	}
	if r.Baseline != nil {
		out.Baseline = &baselineJSON{r.Baseline.Median.Seconds(), r.Baseline.P95.Seconds(), r.Baseline.Count}
	}
	if r.Speedup > 0 {
		out.SpeedupBound = &r.Speedup
	}
	if r.Recent != nil {
		out.Recent = &recentJSON{RecentTime.Seconds(), r.Recent.Verdict, r.Recent.Finding}
	}
	if r.Uncertainty > 0.01 {
		out.UncertaintyRatio = &r.Uncertainty
	}
	if r.Pressure != nil {
		out.Pressure = &pressureJSON{r.Pressure.Some.Seconds(), r.Pressure.Full.Seconds()}
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, findingJSON(f))
	}
	out.Load, out.OtherReaders = r.loadJSON(), r.Others
	for i := range r.Disks {
		d := &r.Disks[i]
		out.Disks = append(out.Disks, diskJSON{
			Name: d.Name, ReadBytes: d.ReadBytes, ReadOperations: d.ReadOperations,
			ReadAwait:  await(d.ReadTime, d.ReadOperations),
			WriteBytes: d.WriteBytes, WriteOperations: d.WriteOperations,
			WriteAwait: await(d.WriteTime, d.WriteOperations),
			QueueDepth: d.QueueDepth, BusyRatio: d.BusyRatio, UnderPath: d.Under, ceilingJSON: r.ceilingJSON(d),
		})
	}
	for _, m := range r.Mounts {
		out.Mounts = append(out.Mounts, mountJSON{m.Point, m.Type, m.Source})
	}
	for _, s := range r.Stalls {
		out.StorageStalls = append(out.StorageStalls, stretchJSON{r.Wall(s.Start), (s.End - s.Start).Seconds()})
	}
	return json.Marshal(out)
}

func (out *reportJSON) ledger(r *Report) {
	out.Stall = &stallJSON{Storage: r.Storage.Seconds(), Other: r.Other.Seconds()}
	cpu := r.CPU.Seconds()
	if len(r.GPUIDs) == 0 {
		if !r.Unattributed() {
			out.Process = &processJSON{cpu}
		}
		return
	}
	out.Stall.CPU = &cpu
	out.GPU = &gpuJSON{IDs: r.GPUIDs, Busy: r.Busy.Seconds(), BusyRatio: r.BusyRatio(), Devices: r.usesJSON()}
}

// await is the mean time of an operation in seconds; nil where there was none.
func await(total time.Duration, operations uint64) *float64 {
	mean, ok := sample.Await(total, operations)
	if !ok {
		return nil
	}
	return &mean
}

// BusyRatio is the share of the window's GPU time in which a GPU worked.
func (r *Report) BusyRatio() float64 {
	if total := r.GPUTime(); total > 0 {
		return r.Busy.Seconds() / total.Seconds()
	}
	return 0
}

// Wall is the wall time of a moment of the window, reckoned from its start, so that a clock that steps in the middle
// moves nothing.
func (r *Report) Wall(mono time.Duration) time.Time { return r.Start.Wall.Add(mono - r.Start.Mono) }
