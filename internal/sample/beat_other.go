//go:build !linux

package sample

import (
	"context"
	"time"
)

func newBeat(ctx context.Context, interval time.Duration) beat { return newTicking(ctx, interval) }
