package bench

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/scenario/storage"
)

func TestMain(m *testing.M) {
	if storage.Serve() {
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each server of storage takes a second to end
	goleak.VerifyTestMain(m)
}
