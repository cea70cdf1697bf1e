//go:build !linux

package sample

import "time"

// Origin is unknown here.
func Origin() time.Duration { return 0 }
