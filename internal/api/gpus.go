package api

import (
	"context"
	"net/http"
	"time"
)

// Release is the body of POST /v1/gpus/release, and its response.
type Release struct {
	For float64 `json:"for_s"` // 0: the driver is opened again now
}

// Limits of a release.
const (
	ReleasedFor = 10 * time.Minute // by default
	MaxReleased = 24 * time.Hour
)

// release has the server close all files of the driver of GPUs.
func (s *Server) release(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	request := Release{ReleasedFor.Seconds()}
	if err := unmarshal(body, &request, `{"for_s":600}`, "for_s"); err != nil {
		return err
	}
	if request.For < 0 || request.For > MaxReleased.Seconds() {
		return refuse(http.StatusBadRequest, "for_s is how many seconds GPUs are released for: give 0 to %.0f",
			MaxReleased.Seconds())
	}
	if who := peerOfRequest(r.Context()); !s.local || !who.privileged() {
		return refuse(http.StatusForbidden, "nothing is read of GPUs that are released: release them as root or as the "+
			"agent's user, over its unix socket")
	}
	if err := s.monitor.ReleaseGPUs(time.Duration(request.For * float64(time.Second))); err != nil {
		return refuse(http.StatusServiceUnavailable, "%v", err)
	}
	reply(w, http.StatusOK, request)
	return nil
}

// ReleaseGPUs has the server close all files of the driver of GPUs for a time, or open it again with 0.
func (c *Client) ReleaseGPUs(ctx context.Context, length time.Duration) error {
	body := Release{length.Seconds()}
	_, err := ask(ctx, c, http.MethodPost, "/v1/gpus/release", body, func(*Release) bool { return true })
	return err
}
