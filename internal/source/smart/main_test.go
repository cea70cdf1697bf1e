package smart

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write drive.json into testdata/smart/*.txtar")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
