package resident

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		Watch(ctx)
	})
}
