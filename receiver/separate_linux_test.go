//go:build linux && (amd64 || arm64)

package receiver

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/trust"
)

// A Collector gives its capabilities to helpers before its main, if it is asked to.
func TestCollectorSeparatesPrivileges(t *testing.T) {
	const act = "STALLSPAN_RECEIVER_TEST"
	if os.Getenv(act) != "" {
		text, err := os.ReadFile("/proc/self/status")
		fmt.Printf("%s%v\nhelpers %s\n", text, err, os.Getenv(helper.Variable))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root for capabilities of a service")
	}
	for _, wanted := range []bool{false, true} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCollectorSeparatesPrivileges$")
		cmd.Env = append(os.Environ(), act+"=1")
		if wanted {
			cmd.Env = append(cmd.Env, helper.Variable+"=/")
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := trust.StartWith(trust.Processes, cmd.Start); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("got %v, %s", err, &out)
		}
		if kept := strings.Contains(out.String(), "CapPrm:\t0000000000080004"); kept == wanted ||
			strings.Contains(out.String(), `"read"`) != wanted {
			t.Errorf("with the variable %v: got %s, want its capabilities in a helper only then", wanted, &out)
		}
	}
}
