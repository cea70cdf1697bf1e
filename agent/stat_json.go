package agent

import (
	"bytes"
	"encoding/json"

	"github.com/stallspan/stallspan/agent/internal/stat"
)

// statTime is the format of times: RFC 3339 in UTC with milliseconds, so that lines can be sorted by it.
const statTime = "2006-01-02T15:04:05.000Z07:00"

// statLine is a line of stat --json, as docs/stat.md describes it.
type statLine struct {
	Time     string         `json:"time"`
	Interval float64        `json:"interval_s"`
	Pressure *stat.Pressure `json:"pressure,omitempty"`
	Core     *stat.Core     `json:"busiest_core,omitempty"`
	GPUs     []statGPU      `json:"gpus"`
	Disks    []stat.Disk    `json:"disks"`
}

// statGPU is a GPU with its use.
type statGPU struct {
	*stat.GPU
	*stat.GPUUse
}

func printStatJSON(to *bytes.Buffer, r *stat.Rates) error {
	line := statLine{Time: r.At.Wall.UTC().Format(statTime), Interval: r.Interval.Seconds(), Pressure: r.Pressure,
		Core: r.BusiestCore,
		GPUs: make([]statGPU, len(r.GPUs)), Disks: r.Disks}
	for i := range r.GPUs {
		line.GPUs[i] = statGPU{&r.GPUs[i], &r.GPUs[i].Use}
	}
	if line.Disks == nil {
		line.Disks = []stat.Disk{} // an array, also of nothing
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}
