package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Status is the response to GET /v1/status.
type Status struct {
	Version      string  `json:"version"`
	Uptime       float64 `json:"uptime_s"`
	Interval     float64 `json:"interval_s"`
	LastRound    float64 `json:"last_round_age_s"` // since a round of readings was complete
	LateReadings uint64  `json:"late_readings"`
	Panics       uint64  `json:"panics"`
	WindowsOpen  int     `json:"windows_open"`
	WindowsLeft  uint64  `json:"windows_left"` // detected ones that were too many
	// OperationsLeft are those of disks that had no place in a histogram of their durations.
	OperationsLeft uint64        `json:"operations_left"`
	GPUs           []StatusGPU   `json:"gpus"`
	Disks          []string      `json:"disks"` // without partitions and disks that are stacked on others
	Rights         StatusRights  `json:"rights"`
	Export         *ExportStatus `json:"export,omitempty"` // absent where the server exports nothing by itself, as run
	Problems       []string      `json:"problems"`
}

// StatusGPU is a GPU of the newest reading.
type StatusGPU struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"` // ok, or a sample.GPUStatus
}

// StatusRights are what the server may read besides what belongs to its own user.
type StatusRights struct {
	Scheduler  bool     `json:"scheduler"`
	Refused    string   `json:"scheduler_refused,omitempty"` // why not
	Lacks      []string `json:"lacks,omitempty"`             // what the kernel's tracepoints would give, and do not
	OtherUsers bool     `json:"other_users"`
}

// ExportStatus is what became of spans, metrics and log records.
type ExportStatus struct {
	Enabled bool   `json:"enabled"`           // a backend is configured
	Failing string `json:"failing,omitempty"` // why nothing arrives now
	Lost    uint64 `json:"lost"`              // spans and log records that were dropped or refused
}

// maxStatusDisks bounds the disks in a Status.
const maxStatusDisks = 1024

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	rights := s.monitor.Rights()
	status := Status{
		Version:        s.version,
		Uptime:         time.Since(s.started).Seconds(),
		Interval:       s.monitor.Interval().Seconds(),
		LastRound:      s.monitor.RoundAge().Seconds(),
		LateReadings:   s.monitor.Late(),
		Panics:         sample.Panics(),
		WindowsOpen:    s.monitor.Windows.Open(),
		WindowsLeft:    s.monitor.Windows.DetectedLeft(),
		OperationsLeft: s.monitor.OperationsLeft(),
		GPUs:           []StatusGPU{},
		Disks:          []string{},
		Rights:         StatusRights{rights.Scheduler, rights.Refused, rights.Lacks, rights.OtherUsers},
		Problems:       []string{},
	}
	for _, g := range s.monitor.GPUs() {
		status.GPUs = append(status.GPUs, StatusGPU{ID: g.ID, Name: g.Name, Status: cmp.Or(string(g.Status), "ok")})
	}
	disks := s.monitor.Disks()
	status.Disks = append(status.Disks, disks[:min(len(disks), maxStatusDisks)]...)
	if s.events.Export != nil {
		export := s.events.Export()
		status.Export = &export
	}
	for _, problem := range s.monitor.Problems() {
		status.Problems = append(status.Problems, problem.Error())
	}
	if s.events.Trouble != nil {
		status.Problems = append(status.Problems, s.events.Trouble()...)
	}
	status.Problems = peerOfRequest(r.Context()).problems(status.Problems)
	reply(w, http.StatusOK, status)
	return nil
}

// Scraped are the metrics for Prometheus.
type Scraped struct {
	All     http.Handler // with the histograms of windows, whose labels are texts of their users
	Machine http.Handler // without them
}

// Scraping makes the server serve GET /metrics. Call it before Serve.
func (s *Server) Scraping(m Scraped) *Server {
	s.metrics = m
	return s
}

// scrape serves the metrics: all to root and the server's user, and those of the machine to others.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	who := peerOfRequest(r.Context())
	metrics := s.metrics.Machine
	if who.privileged() {
		metrics = s.metrics.All
	}
	if metrics == nil {
		return refuse(http.StatusNotFound, "this server has no metrics for Prometheus: use stallspan agent, or the "+
			"Collector's prometheus exporter")
	}
	release, err := s.acquire(who.name)
	if err != nil {
		return err
	}
	defer release()
	metrics.ServeHTTP(w, r)
	return nil
}
