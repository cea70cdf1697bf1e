package bench

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/test/slowdisk"
)

func TestMain(m *testing.M) {
	if slowdisk.Serve() {
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each server of storage takes a second to end
	goleak.VerifyTestMain(m)
}
