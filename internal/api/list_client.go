package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stallspan/stallspan/internal/explain"
)

// maxListing bounds the response with all windows, in bytes: 4,096 open ones and those of an hour.
const maxListing = 64 << 20

// Listing is all windows that a server knows.
type Listing struct {
	Running []*explain.Report `json:"running"` // with their ledgers so far
	Ended   []*explain.Report `json:"ended"`   // reported within the last hour
}

// Windows returns the open windows, and those that were reported within the last hour.
func (c *Client) Windows(ctx context.Context) (Listing, error) {
	answer, err := c.limited(ctx, http.MethodGet, "/v1/windows", nil, maxListing)
	if err != nil {
		return Listing{}, err
	}
	var all Listing
	if err := json.Unmarshal(answer, &all); err != nil || all.Running == nil || all.Ended == nil {
		return Listing{}, c.foreign(answer)
	}
	return all, nil
}
