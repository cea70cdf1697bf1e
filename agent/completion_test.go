package agent

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

// Shells complete the values of flags, and show no backquotes.
func TestCompletionValues(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	s := baseline.Open(db, func(err error) { t.Error(err) })
	s.Learn("load/nvme/cold/llama 7b", time.Second, false, time.Now())
	s.Learn("epoch/train.py", time.Second, false, time.Now())
	s.Close()
	disks := cli.DiskNames()
	if len(disks) == 0 {
		t.Skip("this machine has no block device to complete")
	}
	for args, want := range map[string]string{
		"baseline reset --file " + db + " ":          "train.py\n",
		"baseline reset --file " + db + " load":      "load/nvme/cold/llama 7b\t1 duration, median 1.0 s\n:4\n",
		"baseline reset --file " + db + " train.py ": ":4\n",
		"baseline reset --file " + db + "-none ":     ":4\n",
		"events test stallspan.gpu.l":                "stallspan.gpu.lost\n:4\n",
		"bench " + disks[0][:1]:                      ":4\n",
		"stat A":                                     "ALL\n:4\n",
		"stat " + disks[0] + " " + disks[0]:          ":4\n",
		"health ":                                    ":4\n",
		"docs verd":                                  "verdicts\n:4\n",
		"run --fail-on ":                             "slow\n",
		"compare --fail-on ":                         "slower\n",
		"mark begin --kind m":                        "model_load\n",
		"--color ":                                   "auto\nalways\nnever\n",
		"compare --":                                 "--threshold\tthe percentage above which",
	} {
		v := stallspan(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code := v.run(); code != 0 || !strings.Contains(v.out.String(), want) || strings.Contains(v.out.String(), "`") {
			t.Errorf("%q: got exit code %d, %q, want %q in it", args, code, v.out.String(), want)
		}
	}
}
