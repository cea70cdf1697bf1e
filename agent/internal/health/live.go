package health

import (
	"context"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
)

const (
	liveAnswer = 5 * time.Second  // until the agent must have answered
	liveRound  = 30 * time.Second // until it must have read all of its sources
)

// checkAgent fails if the agent of this machine does not answer, or no longer reads.
func checkAgent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveAnswer)
	defer cancel()
	status, err := api.NewClient(api.DefaultSocket()).Status(ctx)
	if err != nil {
		return err
	}
	if age := time.Duration(status.LastRound * float64(time.Second)); age > liveRound {
		return cli.ExitError{Code: cli.ExitFailing,
			Err: fmt.Errorf("the agent has read nothing for %v: a source hangs, restart it", age.Round(time.Second))}
	}
	return nil
}
