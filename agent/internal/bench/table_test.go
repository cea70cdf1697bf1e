package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/test/golden"
)

// measuredReport has all numbers.
func measuredReport() *Report {
	r := &Result{
		Device: "nvme0n1", Path: "/data/" + strings.Repeat("a long name of a file ", 4), Size: 1 << 40, Direct: true,
		Cached: 12.5 * (1 << 30), Sequential: 3.25 * (1 << 30), OfDisk: true, Seed: 42,
		ending: ending{Duration: 20.25,
			Notes: []string{"It is on 2 disks (sda, sdb): the numbers are those of all of them."}},
	}
	for i, depth := range []int{1, 2, 4, 8, 16, 32} {
		iops := float64(int(12000) << i)
		r.Random = append(r.Random, Random{Depth: depth, IOPS: iops, Rate: iops * 4096,
			AwaitP50: 8.25e-5 * float64(i+1), AwaitP99: 3e-3 * float64(i+1), Reads: 30000})
	}
	return &Report{Result: r, Ceiling: r.Ceiling(), Identity: "size=2147483648 serial=S1",
		KeptIn: "/var/lib/stallspan/ceilings.json"}
}

func TestBenchOutput(t *testing.T) {
	var table, text bytes.Buffer
	measuredReport().draw(output.NewTable(&table))
	for line := range strings.Lines(table.String()) {
		if output.Columns(strings.TrimSuffix(line, "\n")) > output.TableWidth {
			t.Errorf("too wide: %q", line)
		}
	}
	golden.Check(t, filepath.Join("testdata", "table.txt"), table.Bytes())
	if err := output.WriteJSON(&text, measuredReport()); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "report.json"), text.Bytes())
	document, err := os.ReadFile("../../../docs/" + "bench.md")
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := json.Unmarshal(text.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	for key := range golden.Keys(object) {
		if !strings.Contains(string(document), "`"+key+"`") {
			t.Errorf("docs/bench.md lacks the key %s", key)
		}
	}
}
