package agent

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// withGPU makes a call of stallspan load the stand-in for the NVIDIA driver, with the real loader.
func (v *invocation) withGPU(library string, player *fixture.Player) *invocation {
	v.Env = append(v.Env, "LD_LIBRARY_PATH="+filepath.Dir(library), "FAKENVML_FILE="+player.Path)
	return v
}

// A run's epochs have the GPU utilization that the driver reports.
func TestRunWithGPU(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	player := fixture.PlayGPU(t, "period_us 20000\ngpu 0 utilization=100 name=\"Test GPU\"\n")
	report := filepath.Join(t.TempDir(), "r.json")
	idle := filepath.Join(t.TempDir(), "idle")
	v := stallspan(t, "run", "--report", report, "--", "sh", "-c",
		"echo Epoch 1/2; sleep 2; printf 'period_us 20000\\ngpu 0 utilization=0 name=\"Test GPU\"\\n' >"+idle+
			"; mv "+idle+" "+player.Path+"; echo Epoch 2/2; sleep 2")
	if code := v.withGPU(library, player).run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := readReport(t, report)
	if len(d.Windows) != 2 {
		t.Fatalf("windows: %+v", d.Windows)
	}
	for i, want := range []float64{1, 0} {
		w := &d.Windows[i]
		// also of the first, which begins as the GPU is seen for the first time
		if w.GPU == nil || math.Abs(w.GPU.BusyRatio-want) > 0.06 {
			t.Errorf("%s: %+v, want a busy ratio of %v", w.label(), w.GPU, want)
		}
	}
	if d.Windows[0].Verdict != "gpu_bound" || !strings.Contains(v.err.String(), "GPU busy") {
		t.Errorf("got %s:\n%s, want gpu_bound, in a table with GPU busy", d.Windows[0].Verdict, v.err.String())
	}
}

// gpuLine is the part of stat --json for GPUs.
type gpuLine struct {
	GPUs []struct {
		ID, Name, Status string
		Utilization      *float64
		MemoryUsed       *uint64  `json:"memory_used_bytes"`
		Temperature      *float64 `json:"temperature_celsius"`
		LinkWidth        *int     `json:"pcie_link_width"`
	}
	Disks []struct{ Name string }
}

// If the driver or a GPU fails, everything else is still shown.
func TestStatWithBadGPUs(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	for name, test := range map[string]struct {
		plays  string
		status string // of the first GPU at the end
		gpus   int
	}{
		"works":      {"gpu 0 utilization=40", "", 1},
		"no device":  {"devices 0", "", 0},
		"no session": {"init_error 999", "", 0},
		"hangs": {"gpu 0 utilization=40\ngpu 1 utilization=10\nhang gpu=0 call=nvmlDeviceGetSamples seconds=4",
			"hung", 2},
		"hangs at first": {"hang call=nvmlInit_v2 seconds=60", "", 0},
		"garbage":        {"gpu 0 utilization=40\ngarbage 0", "", 1},
		"lost":           {"gpu 0 utilization=40\nlost 0", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			player := fixture.PlayGPU(t, test.plays)
			v := stallspan(t, "stat", "--json", "0.5", "6").withGPU(library, player)
			began := time.Now()
			if code := v.run(); code != 0 {
				t.Fatalf("exit code %d: %s", code, v.err.String())
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			lines := strings.Split(strings.TrimSpace(v.out.String()), "\n")
			if len(lines) != 6 {
				t.Fatalf("%d lines: %s", len(lines), v.out.String())
			}
			var last gpuLine
			if err := json.Unmarshal([]byte(lines[5]), &last); err != nil {
				t.Fatal(err)
			}
			if len(last.Disks) == 0 {
				t.Log("no disks are shown")
			}
			if test.gpus >= 0 && len(last.GPUs) != test.gpus {
				t.Fatalf("GPUs: %+v, want %d; it said %s", last.GPUs, test.gpus, v.err.String())
			}
			if len(last.GPUs) == 0 {
				return
			}
			if g := last.GPUs[0]; g.Status != test.status && test.gpus >= 0 {
				t.Errorf("status %q, want %q: %s", g.Status, test.status, lines[5])
			}
			for _, g := range last.GPUs {
				if g.Utilization != nil && (*g.Utilization < 0 || *g.Utilization > 1) || g.Temperature != nil &&
					*g.Temperature > 200 {
					t.Errorf("garbage is shown: %s", lines[5])
				}
			}
		})
	}
}

// A window of a GPU that does not exist is refused, with those that do.
func TestMarkUnknownGPU(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	player := fixture.PlayGPU(t, "gpu 0 uuid=GPU-0\ngpu 1 uuid=GPU-1\n")
	const script = `export ` + actAs + `=stallspan
		"$0" mark begin --kind custom --gpu GPU-1 >&2 || exit 9; exec "$0" mark begin --kind custom --gpu GPU-nope`
	v := stallspan(t, "run", "--quiet", "--", "sh", "-c", script, os.Args[0])
	if code := v.withGPU(library, player).run(); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	const want = `this machine has no GPU "GPU-nope": name one of GPU-0, GPU-1`
	if got := v.err.String(); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
