package explain

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// mount is the JSON form of a mount without a disk of this machine. What its counters grew by in the window is of all
// programs.
type mount struct {
	Point  string `json:"point"`
	Type   string `json:"type"`
	Source string `json:"source"`

	Read  *mountDone `json:"read,omitempty"`
	Write *mountDone `json:"write,omitempty"`
	Other *mountDone `json:"other,omitempty"`

	Requests        bool     `json:"requests,omitempty"` // these are requests to the server, and not calls of programs
	Retransmissions *uint64  `json:"retransmissions,omitempty"`
	Timeouts        uint64   `json:"timeouts,omitempty"`
	Called          *uint64  `json:"read_by_calls_bytes,omitempty"`
	Waiting         *float64 `json:"requests_waiting_s,omitempty"`
	MeanWaiting     *float64 `json:"requests_waiting_mean,omitempty"`
	Connections     int      `json:"connections,omitempty"`
	ReadSize        uint64   `json:"read_size_bytes,omitempty"`
	Partial         bool     `json:"partial,omitempty"`
}

// mountDone are the operations of one class. Times are means of an operation.
type mountDone struct {
	Operations uint64   `json:"operations"`
	Bytes      uint64   `json:"bytes,omitempty"`
	Time       *float64 `json:"time_mean_s,omitempty"`
	RoundTrip  *float64 `json:"round_trip_mean_s,omitempty"`
	Queue      *float64 `json:"queue_mean_s,omitempty"`
}

func newMounts(r *window.Report) (all []mount) {
	for _, m := range r.Mounts {
		out := mount{Point: m.Point, Type: m.Type, Source: m.Source}
		if u := useOf(r, &m); u != nil {
			out.add(r, u)
		}
		all = append(all, out)
	}
	return all
}

// useOf returns what was counted for a mount; nil if nothing was.
func useOf(r *window.Report, m *sample.Mount) *window.MountUse {
	for i := range r.MountUses {
		if r.MountUses[i].ID == m.ID {
			return &r.MountUses[i]
		}
	}
	return nil
}

func (out *mount) add(r *window.Report, u *window.MountUse) {
	out.Requests, out.Connections, out.ReadSize, out.Partial = u.Has&sample.HasMountRequests != 0, u.Connections,
		u.ReadSize, u.Partial
	if u.Has&sample.HasMountOperations != 0 {
		out.Read, out.Write = newMountDone(&u.Read, u.Has), newMountDone(&u.Write, u.Has)
		out.Other = newMountDone(&u.Other, u.Has)
	}
	if u.Has&sample.HasMountTransport != 0 {
		out.Retransmissions, out.Timeouts = &u.Retransmissions, u.Timeouts
	}
	if u.Has&sample.HasMountCalled != 0 {
		out.Called = &u.Called
	}
	if u.Has&sample.HasMountWaiting != 0 {
		waiting := u.Waiting.Seconds()
		out.Waiting = &waiting
		if length := r.Duration().Seconds(); length > 0 {
			mean := waiting / length
			out.MeanWaiting = &mean
		}
	}
}

// newMountDone returns nil without an operation.
func newMountDone(d *window.MountDone, has sample.MountFields) *mountDone {
	if d.Operations == 0 {
		return nil
	}
	out := &mountDone{Operations: d.Operations, Bytes: d.Bytes}
	if has&sample.HasMountTime != 0 {
		out.Time = sample.Known(d.Mean())
	}
	if has&sample.HasMountTransport != 0 {
		out.RoundTrip = sample.Known(sample.Await(d.RoundTrip, d.Operations))
		out.Queue = sample.Known(sample.PerOperation(d.Queue.Seconds(), d.Operations)) // often none
	}
	return out
}

// mountsUsed names file systems without a disk of this machine, with their servers and what was counted for them.
func mountsUsed(r *window.Report) string {
	names := make([]string, 0, 3)
	for _, m := range r.Mounts[:min(3, len(r.Mounts))] {
		from := m.Type
		if m.Source != "" && m.Source != m.Type && m.Source != "none" {
			from += " from " + m.Source
		}
		if u := useOf(r, &m); u != nil {
			from += mountNumbers(r, u)
		}
		names = append(names, m.Point+" ("+from+")")
	}
	are := "is"
	if len(names) > 1 {
		are = "are"
	}
	return "files in use are on " + strings.Join(names, ", ") + ", which " + are + " on no disk of this machine"
}

// mountNumbers says what was done on a mount, for any program: ": 1240 reads of 128 KiB, 45 ms each, 12
// retransmissions"; "" for nothing.
func mountNumbers(r *window.Report, u *window.MountUse) string {
	var parts []string
	done, noun := &u.Read, "read"
	if u.Write.Bytes > u.Read.Bytes {
		done, noun = &u.Write, "write"
	}
	if done.Operations > 0 {
		parts = append(parts, operations(u, done, noun+"s", noun, true))
	}
	if u.Other.Operations > 0 && (done.Operations == 0 || u.Other.Time > done.Time) {
		parts = append(parts, operations(u, &u.Other, "metadata operations", "metadata operation", false))
	}
	if n := u.Retransmissions; n > 0 {
		parts = append(parts, count(n, "retransmission"))
	}
	if length := r.Duration().Seconds(); u.Has&sample.HasMountWaiting != 0 && u.Waiting > 0 && length > 0 {
		parts = append(parts, fmt.Sprintf("%.1f requests waiting on average", u.Waiting.Seconds()/length))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func operations(u *window.MountUse, d *window.MountDone, many, one string, sized bool) string {
	text := fmt.Sprintf("%d %s", d.Operations, many)
	if d.Operations == 1 {
		text = "1 " + one
	}
	if sized && d.Bytes > 0 {
		text += " of " + Size(d.Bytes/d.Operations)
	}
	if mean, ok := d.Mean(); ok && u.Has&sample.HasMountTime != 0 {
		text += ", " + Duration(mean)
		if d.Operations > 1 {
			text += " each"
		}
	}
	return text
}
