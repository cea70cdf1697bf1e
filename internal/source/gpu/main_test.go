package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// fakeLibraryPath is the path of the fake library, once it is built, in a folder of its own.
var fakeLibraryPath string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if fakeLibraryPath != "" {
			_ = os.RemoveAll(filepath.Dir(fakeLibraryPath))
		}
		os.Exit(code)
	}))
}
