package api

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestReleaseGPUs(t *testing.T) {
	s := serve(t, nil)
	for _, length := range []time.Duration{0, time.Minute, MaxReleased} {
		if err := s.ReleaseGPUs(t.Context(), length); err != nil {
			t.Errorf("%v: got %v, want no error", length, err)
		}
	}
	for _, length := range []time.Duration{-time.Second, MaxReleased + time.Second} {
		var refused *Error
		if err := s.ReleaseGPUs(t.Context(), length); !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
			t.Errorf("%v: got %v, want it refused as a bad request", length, err)
		}
	}
}
