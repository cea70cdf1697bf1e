package gpu

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// folder is where the stand-in for the driver's library was built, if it was.
var folder string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if folder != "" {
			_ = os.RemoveAll(folder)
		}
		os.Exit(code)
	}))
}
