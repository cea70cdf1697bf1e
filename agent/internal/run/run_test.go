package run

import (
	"errors"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/window"
)

func TestOutcome(t *testing.T) {
	full := errors.New("no space left on device")
	for _, test := range []struct {
		code   int
		saved  error
		failOn string
		slow   bool
		want   int
	}{
		{0, nil, "", true, 0},
		{0, nil, "slow", false, 0},
		{0, nil, "slow", true, cli.ExitSlow},
		{7, nil, "slow", true, 7},
		{0, full, "slow", true, cli.ExitRun},
		{7, full, "", false, 7},
	} {
		r := &run{options: &options{failOn: test.failOn}, code: test.code,
			whole: &window.Report{Judgement: window.Judgement{Slow: test.slow}}}
		if code, _ := cli.ExitCode(r.outcome(test.saved), true); code != test.want {
			t.Errorf("%+v: got exit code %d", test, code)
		}
	}
}
