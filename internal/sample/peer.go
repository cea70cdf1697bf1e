package sample

import "time"

// Peer is what a job exchanged over TCP with one other end. The counters start at 0 when the job is followed and never
// decrease.
type Peer struct {
	Job      string `json:"job"`
	Address  string `json:"address"`            // "10.0.0.7:443"; "*:443" for those that found no room of their own, "*:*" if those did not either
	Accepted bool   `json:"accepted,omitempty"` // the peers connected to the job, at this address of it

	Received uint64 `json:"received"` // bytes of data
	Sent     uint64 `json:"sent"`     // bytes of data, without what was sent again
	Messages uint64 `json:"messages"` // packets of data sent: at least one for each request
	Opened   uint64 `json:"opened"`   // connections that were seen

	PastReceived uint64 `json:"past_received,omitempty"` // of "*:*": part of neither counter, of peers that were removed
	PastSent     uint64 `json:"past_sent,omitempty"`

	Closed      uint64        `json:"closed,omitempty"`       // connections that are closed, and whose last bytes are missing
	Packets     uint64        `json:"packets,omitempty"`      // of data that were received
	OutOfOrder  uint64        `json:"out_of_order,omitempty"` // part of Packets: others before them were lost, or late
	Connections int           `json:"connections,omitempty"`  // open now
	MinRTT      time.Duration `json:"min_rtt,omitempty"`      // shortest round trip seen; 0 if not known
	Heard       time.Duration `json:"heard,omitempty"`        // Stamp.Mono when data came last, or a connection began: maybe before Mono began, below 0; 0 if not known
	Came        uint64        `json:"came,omitempty"`         // bytes of data that came on the open connections since they began
	Window      uint64        `json:"window,omitempty"`       // bytes that may be on their way on one connection
}
