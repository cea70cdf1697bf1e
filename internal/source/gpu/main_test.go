package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// standIn is the stand-in for the driver's library, where one was built, in a folder of its own.
var standIn string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if standIn != "" {
			_ = os.RemoveAll(filepath.Dir(standIn))
		}
		os.Exit(code)
	}))
}
