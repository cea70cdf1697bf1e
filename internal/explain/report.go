package explain

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Report is the JSON form of a window's report, as docs/report.md describes it. Times are in seconds, sizes in bytes,
// ratios from 0 to 1. The key of an unknown quantity is absent.
type Report struct {
	ID     string        `json:"id,omitempty"`
	Kind   window.Kind   `json:"kind"`
	Name   string        `json:"name,omitempty"`
	Model  string        `json:"model,omitempty"`
	Epoch  *int          `json:"epoch,omitempty"`
	Epochs int           `json:"epochs,omitempty"`
	Source window.Source `json:"source,omitempty"`
	Scope  window.Scope  `json:"scope,omitempty"`
	Job    *Job          `json:"job,omitempty"`
	Within string        `json:"within,omitempty"` // id of the epoch that it is a part of
	window.Outcome
	Start            time.Time        `json:"start"`
	End              time.Time        `json:"end"`
	Duration         float64          `json:"duration_s"`
	GPU              *gpus            `json:"gpu,omitempty"`
	Process          *process         `json:"process,omitempty"`
	Stall            *stall           `json:"stall,omitempty"`
	Evidence         window.Evidence  `json:"evidence,omitempty"`
	Moments          int              `json:"moments,omitempty"`
	NoSchedule       string           `json:"no_schedule,omitempty"`
	Verdict          window.Verdict   `json:"verdict"`
	Finding          string           `json:"finding"`
	Remedy           string           `json:"remedy,omitempty"`
	Findings         []FurtherFinding `json:"findings,omitempty"`
	Slow             bool             `json:"slow"`
	SlownessReason   string           `json:"slowness_reason,omitempty"`
	Recent           *recent          `json:"recent,omitempty"`
	Baseline         *baseline        `json:"baseline,omitempty"`
	SpeedupBound     *float64         `json:"speedup_bound,omitempty"`
	SpeedupLow       float64          `json:"speedup_low,omitempty"`
	SpeedupHigh      float64          `json:"speedup_high,omitempty"`
	WhatIf           *whatIf          `json:"what_if,omitempty"`
	Load             *load            `json:"load,omitempty"`
	Own              *window.OwnIO    `json:"own_io,omitempty"`
	Disks            list[Disk]       `json:"disks,omitempty"`
	SlowDevice       *slowDevice      `json:"slow_device,omitempty"`
	OtherReaders     int              `json:"windows_on_its_disks,omitempty"`
	Mounts           []mount          `json:"mounts,omitempty"`
	Peers            []peer           `json:"peers,omitempty"`
	Pressure         *pressure        `json:"pressure,omitempty"`
	StorageStalls    []stretch        `json:"storage_stalls,omitempty"`
	UncertaintyRatio *float64         `json:"uncertainty_ratio,omitempty"`
	Interrupted      bool             `json:"interrupted,omitempty"`
	Confidence       float64          `json:"confidence,omitempty"` // of a detected window
	Steps            *steps           `json:"steps,omitempty"`
	Phases           []phase          `json:"phases,omitempty"`
	Reporter         string           `json:"reporter,omitempty"` // who measured it, if that was not this program
}

// GPUTime is the time that the ledger divides, in seconds: the window's duration for each of its GPUs, or once.
func (out *Report) GPUTime() float64 {
	if out.GPU == nil {
		return out.Duration
	}
	return out.Duration * float64(max(1, len(out.GPU.IDs)))
}

// Label is the window's name for people.
func (out *Report) Label() string {
	return NameOf(out.Kind, out.Name, out.Model, out.Epoch)
}

type recent struct {
	Duration float64        `json:"duration_s"`
	Verdict  window.Verdict `json:"verdict"`
	Finding  string         `json:"finding"`
}

type baseline struct {
	Median float64 `json:"median_s"`
	P95    float64 `json:"p95_s"`
	Count  int     `json:"count"`
}

type gpus struct {
	IDs       list[string] `json:"ids"`
	Busy      float64      `json:"busy_s"`
	BusyRatio float64      `json:"busy_ratio"`
	Devices   []gpu        `json:"devices,omitempty"`
	Ledgers   []part       `json:"ledgers,omitempty"`
}

// part is one GPU's part of the ledger.
type part struct {
	ID      string  `json:"id"`
	Index   *int    `json:"index,omitempty"`
	Busy    float64 `json:"busy_s"`
	Storage float64 `json:"storage_s"`
	CPU     float64 `json:"cpu_s"`
	Ready   float64 `json:"ready_s,omitempty"`
	Other   float64 `json:"other_s"`
}

func newParts(ledgers []window.GPULedger) (all []part) {
	for i := range ledgers {
		l := &ledgers[i]
		p := part{l.ID, nil, l.Busy.Seconds(), l.Storage.Seconds(), (l.CPU - l.Ready).Seconds(), l.Ready.Seconds(),
			l.Other.Seconds()}
		if l.Index >= 0 {
			p.Index = &l.Index
		}
		all = append(all, p)
	}
	return all
}

type process struct {
	OnCPU float64 `json:"on_cpu_s"`
}

type stall struct {
	Storage float64  `json:"storage_s"`
	CPU     *float64 `json:"cpu_s,omitempty"`
	Other   float64  `json:"other_s"`
	Ready   float64  `json:"ready_s,omitempty"`   // for a core; no part of the CPU time
	Network float64  `json:"network_s,omitempty"` // part of Other
	Reasons []reason `json:"other_reasons,omitempty"`
}

// Steps says how long the steps of an epoch took; "" if that is not known.
func Steps(r *window.Report) string {
	switch s := r.Steps; {
	case s == nil:
		return ""
	case s.Count == 0:
		return "A step takes " + Duration(s.Period.Seconds()) + " (median)."
	default:
		return fmt.Sprintf("A step takes %s (median of %d).", Duration(s.Period.Seconds()), s.Count)
	}
}

// steps are of an epoch.
type steps struct {
	Period     float64 `json:"period_s"`
	Count      int     `json:"count,omitempty"`
	Confidence float64 `json:"confidence"`
}

type reason struct {
	Kind window.OtherKind `json:"kind"`
	Name string           `json:"name"`
	Time float64          `json:"time_s"`
}

// whatIf has speed-ups.
type whatIf struct {
	NoStorage     float64 `json:"no_storage,omitempty"`
	NoStorageLow  float64 `json:"no_storage_low,omitempty"`
	NoStorageHigh float64 `json:"no_storage_high,omitempty"`
	TwiceWorkers  float64 `json:"twice_the_workers,omitempty"`
	TwoWorkers    float64 `json:"two_workers_at_most,omitempty"`
	TwiceGPU      float64 `json:"gpu_twice_as_fast,omitempty"`
	NoNetwork     float64 `json:"no_network,omitempty"`
	NoNetworkLow  float64 `json:"no_network_low,omitempty"`
	NoNetworkHigh float64 `json:"no_network_high,omitempty"`
	RequestsLow   float64 `json:"eight_times_the_requests_low,omitempty"`
	RequestsHigh  float64 `json:"eight_times_the_requests_high,omitempty"`
}

// Disk is the work of one disk in a window, for all programs. The awaits are nil without operations. They and the last
// two are nil if the kernel's counters cannot be true.
type Disk struct {
	Name            string   `json:"name"`
	ReadBytes       uint64   `json:"read_bytes"`
	ReadOperations  uint64   `json:"read_operations"`
	ReadAwait       *float64 `json:"read_await_s,omitempty"`
	WriteBytes      uint64   `json:"write_bytes"`
	WriteOperations uint64   `json:"write_operations"`
	WriteAwait      *float64 `json:"write_await_s,omitempty"`
	QueueDepth      *float64 `json:"queue_depth,omitempty"`
	BusyRatio       *float64 `json:"busy_ratio,omitempty"` // at most QueueDepth
	UnderPath       bool     `json:"under_path,omitempty"`

	ReadLatency  *latency `json:"read_latency,omitempty"`
	WriteLatency *latency `json:"write_latency,omitempty"`

	// The ratios are of the ceilings before the window: of its own throughput it would always reach nearly all.
	ReadCeiling       float64 `json:"read_ceiling,omitempty"`
	ReadCeilingRatio  float64 `json:"read_ceiling_ratio,omitempty"`
	WriteCeiling      float64 `json:"write_ceiling,omitempty"`
	WriteCeilingRatio float64 `json:"write_ceiling_ratio,omitempty"`
}

// latency is how long the operations of a disk took.
type latency struct {
	Operations uint64  `json:"operations"`
	P50        float64 `json:"p50_s"`
	P99        float64 `json:"p99_s"`
	Max        float64 `json:"max_s"`
	Estimated  bool    `json:"estimated,omitempty"`
}

func newLatency(l *window.Latency) *latency {
	if l == nil {
		return nil
	}
	return &latency{l.Operations, l.P50.Seconds(), l.P99.Seconds(), l.Max.Seconds(), l.Estimated}
}

// slowDevice is a disk, or a device stacked on disks.
type slowDevice struct {
	Disk

	On    []string `json:"on,omitempty"` // the devices directly below, with I/O in the window
	Limit *limit   `json:"limit,omitempty"`
}

// limit is what a cgroup allows on a device, per second; 0 stands for no limit.
type limit struct {
	Cgroup     string              `json:"cgroup"`
	Control    sample.LimitControl `json:"control"`
	ReadBytes  uint64              `json:"read_bytes,omitempty"`
	WriteBytes uint64              `json:"write_bytes,omitempty"`
	Reads      uint64              `json:"reads,omitempty"`
	Writes     uint64              `json:"writes,omitempty"`
}

// peer is the other end of TCP connections.
type peer struct {
	Address     string  `json:"address"`
	Process     string  `json:"process,omitempty"`  // of this machine
	Accepted    bool    `json:"accepted,omitempty"` // peers connected to the program
	Serves      bool    `json:"serves_data,omitempty"`
	Waited      float64 `json:"waited_s,omitempty"`
	Received    uint64  `json:"received_bytes"`
	Sent        uint64  `json:"sent_bytes"`
	Messages    uint64  `json:"messages_sent,omitempty"`
	Connections int     `json:"connections,omitempty"` // open at the end
	Opened      uint64  `json:"connections_opened,omitempty"`
	RTT         float64 `json:"min_rtt_s,omitempty"`
}

func newPeers(uses []window.PeerUse) (all []peer) {
	for i := range uses {
		p := &uses[i]
		all = append(all, peer{p.Address, p.Process, p.Accepted, p.Serves, p.Waited.Seconds(), p.Received, p.Sent, p.Messages,
			p.Connections, p.Opened, p.RTT.Seconds()})
	}
	return all
}

// Job is who a followed job is.
type Job struct {
	Name      string `json:"name"`
	PID       int    `json:"pid,omitempty"` // its first process
	User      string `json:"user,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

func newJob(who *sample.JobName) *Job {
	if who.ID == "" {
		return nil
	}
	j := &Job{Name: who.Name, PID: who.PID, User: who.User}
	for _, a := range who.Attributes {
		switch a.Key {
		case "k8s.pod.name":
			j.Pod = a.Value
		case "k8s.namespace.name":
			j.Namespace = a.Value
		}
	}
	return j
}

type pressure struct {
	Some float64 `json:"io_some_s"`
	Full float64 `json:"io_full_s"`
}

type stretch struct {
	Start    time.Time `json:"start"`
	Duration float64   `json:"duration_s"`
}

type load struct {
	Path      string   `json:"path,omitempty"` // as announced
	Size      uint64   `json:"size,omitempty"`
	Hit       *float64 `json:"page_cache_hit_ratio,omitempty"`
	Estimated bool     `json:"estimated,omitempty"`
	Layer     bool     `json:"image_layer,omitempty"`
	Evicted   uint64   `json:"evicted_bytes,omitempty"`
	IdleAhead float64  `json:"idle_before_s,omitempty"`

	Readers []window.Reader `json:"readers,omitempty"`
	Movers  []window.Reader `json:"movers_before,omitempty"`
}

// NewReport returns the JSON form of a report.
func NewReport(r *window.Report) *Report {
	out := &Report{
		ID: r.ID, Within: r.Within, Kind: r.Kind, Name: r.Name, Model: r.Model, Source: r.Source, Scope: r.Scope,
		Outcome: r.Outcome,
		Start:   r.Start.Wall, End: r.Start.Wall.Add(r.Duration()), Duration: r.Duration().Seconds(),
		Verdict: r.Verdict, Finding: Finding(r), Remedy: Remedy(r), Findings: FurtherFindings(r),
		Slow: r.Slow, SlownessReason: r.SlowReason, Interrupted: r.Interrupted, OtherReaders: r.Others, Own: r.Own,
	}
	if r.HasEpoch {
		out.Epoch = &r.Epoch
	}
	if r.Epochs > 1 {
		out.Epochs = r.Epochs
	}
	out.Job = newJob(&r.Who)
	if r.Split {
		out.addLedger(r)
	}
	if r.Baseline != nil {
		out.Baseline = &baseline{r.Baseline.Median.Seconds(), r.Baseline.P95.Seconds(), r.Baseline.Count}
	}
	if r.Speedup > 0 {
		out.SpeedupBound = &r.Speedup
		out.SpeedupLow, out.SpeedupHigh = r.SpeedupLow, r.SpeedupHigh
	}
	if w := r.WhatIf; w != nil {
		out.WhatIf = &whatIf{w.NoStorage, w.Low, w.High, twiceWorkers(r), w.TwoWorkers, twiceGPU(r),
			w.NoNetwork, w.NetworkLow, w.NetworkHigh, w.RequestsLow, w.RequestsHigh}
	}
	if r.Recent != nil {
		out.Recent = &recent{window.RecentTime.Seconds(), r.Recent.Verdict, Finding(r.Recent)}
	}
	if r.Uncertainty > 0.01 {
		out.UncertaintyRatio = &r.Uncertainty
	}
	if r.Pressure != nil {
		out.Pressure = &pressure{r.Pressure.Some.Seconds(), r.Pressure.Full.Seconds()}
	}
	if l := &r.Load; l.Size > 0 || len(l.Readers) > 0 {
		out.addLoad(r)
	}
	for i := range r.Disks {
		out.Disks = append(out.Disks, newDisk(&r.Disks[i]))
	}
	if r.SlowDevice != nil {
		out.SlowDevice = newSlowDevice(r.SlowDevice)
	}
	out.Peers = newPeers(r.Peers)
	out.Mounts = newMounts(r)
	out.Confidence = r.Confidence
	if s := r.Steps; s != nil {
		out.Steps = &steps{s.Period.Seconds(), s.Count, s.Confidence}
	}
	for i := range r.PhaseReports {
		out.Phases = append(out.Phases, newPhase(&r.Phases[i], r.PhaseReports[i]))
	}
	for _, s := range r.Stalls {
		out.StorageStalls = append(out.StorageStalls, stretch{r.Wall(s.Start), (s.End - s.Start).Seconds()})
	}
	return out
}

func (out *Report) addLedger(r *window.Report) {
	out.Evidence, out.Moments, out.NoSchedule = r.Evidence, r.Moments, r.NoSchedule
	ledgers := r.Ledgers
	if r.StallKnown() {
		out.Stall = &stall{Storage: r.Storage.Seconds(), Other: r.Other.Seconds(), Ready: r.Ready.Seconds(),
			Network: r.Network.Seconds()}
		for _, x := range reasons(r) {
			out.Stall.Reasons = append(out.Stall.Reasons, reason{x.Kind, x.Name, x.Time.Seconds()})
		}
	} else {
		ledgers = nil
	}
	cpu := (r.CPU - r.Ready).Seconds()
	switch {
	case len(r.GPUIDs) > 0:
		if out.Stall != nil {
			out.Stall.CPU = &cpu
		}
		out.GPU = &gpus{IDs: r.GPUIDs, Busy: r.Busy.Seconds(), BusyRatio: r.BusyRatio(), Devices: newGPUs(r.Uses),
			Ledgers: newParts(ledgers)}
	case !r.Unattributed():
		out.Process = &process{cpu}
	}
}

func (out *Report) addLoad(r *window.Report) {
	l := &r.Load
	out.Load = &load{Path: r.Path, Size: l.Size, Estimated: l.Estimated}
	if l.HasHit {
		out.Load.Hit = &l.Hit
	}
	out.Load.Layer, out.Load.Evicted, out.Load.IdleAhead = l.Layer, l.Evicted, l.IdleAhead.Seconds()
	out.Load.Readers, out.Load.Movers = l.Readers, l.Movers
}

func newSlowDevice(slow *window.SlowDevice) *slowDevice {
	out := &slowDevice{Disk: newDisk(&slow.DiskUse)}
	for i := range slow.Below {
		out.On = append(out.On, slow.Below[i].Name)
	}
	if l := slow.Limit; l != nil {
		out.Limit = &limit{l.Cgroup, l.Control, l.ReadBytes, l.WriteBytes, l.Reads, l.Writes}
	}
	return out
}

func newDisk(d *window.DiskUse) Disk {
	return Disk{
		Name: d.Name, ReadBytes: d.ReadBytes, ReadOperations: d.ReadOperations,
		ReadAwait:  sample.Known(d.Await(true)),
		WriteBytes: d.WriteBytes, WriteOperations: d.WriteOperations,
		WriteAwait:  sample.Known(d.Await(false)),
		ReadLatency: newLatency(d.ReadLatency), WriteLatency: newLatency(d.WriteLatency),
		QueueDepth: sample.Known(d.QueueDepth, d.Lacks&sample.LacksQueue == 0),
		BusyRatio:  sample.Known(d.BusyRatio, d.Lacks&sample.LacksIOTicks == 0), UnderPath: d.Under,
		ReadCeiling: d.ReadCeiling, ReadCeilingRatio: d.ReadCeilingRatio,
		WriteCeiling: d.WriteCeiling, WriteCeilingRatio: d.WriteCeilingRatio,
	}
}
