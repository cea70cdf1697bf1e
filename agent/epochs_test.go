package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reported runs a Python program without any setting of its buffering, and returns the report.
func reported(t *testing.T, program string, flags ...string) *reportDocument {
	t.Helper()
	path := t.TempDir() + "/report.json"
	args := append([]string{"run", "--report", path}, flags...)
	v := stallspan(t, append(args, "--", python(t), "-c", "import time, sys\n"+program)...)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	return readReport(t, path)
}

// pause is the time between two lines of the programs below, in seconds.
const pause = "time.sleep(0.4)\n"

// A buffered line would make windows of zero or double length.
func checkWindows(t *testing.T, d *reportDocument, labels ...string) {
	t.Helper()
	var got []string
	for i := range d.Windows {
		w := &d.Windows[i]
		got = append(got, w.label())
		if w.Duration < 0.2 || w.Duration > 8 {
			t.Errorf("%s took %v s", w.label(), w.Duration)
		}
		if w.Unfinished || w.Source != "announced" {
			t.Errorf("%s is unfinished %v, %s", w.label(), w.Unfinished, w.Source)
		}
		if w.Stall == nil {
			t.Errorf("%s has no ledger", w.label())
		}
	}
	if strings.Join(got, ", ") != strings.Join(labels, ", ") {
		t.Errorf("windows: %s", strings.Join(got, ", "))
	}
}

func TestEpochsOfAPipe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, program string
		flags, labels []string
	}{
		{name: "Keras", labels: []string{"epoch 1", "epoch 2", "epoch 3"}, program: `
for epoch in range(3):
    print("Epoch %d/3" % (epoch + 1))
    for step in range(4):
        print("\r%d/4 [====>...] - loss: 0.5" % step, end="")
        time.sleep(0.1)
    print()
`},
		{name: "Hugging Face", labels: []string{"epoch 0", "epoch 1"}, program: pause + `
print({'loss': 1.7631, 'grad_norm': 1.037, 'learning_rate': 3.6e-06, 'epoch': 0.5})
` + pause + `
print({'loss': 1.6, 'grad_norm': 1.037, 'learning_rate': 3.6e-06, 'epoch': 1.0})
` + pause + `
print({'loss': 1.5, 'grad_norm': 1.037, 'learning_rate': 3.6e-06, 'epoch': 1.5})
` + pause + `
print({'train_runtime': 331.72, 'train_samples_per_second': 0.099, 'train_loss': 13.37, 'epoch': 2.0})
`},
		{name: "bars on standard error", labels: []string{"epoch 0", "epoch 1"}, program: `
for epoch in range(2):
    for percent in (0, 50, 100):
        print("\rEpoch %d: %3d%%|##   | %d/18 [00:17<01:02,  4.47s/it]" % (epoch, percent, percent),
              end="", file=sys.stderr)
        time.sleep(0.15)
`},
		{name: "own pattern", flags: []string{"--epoch-pattern", `^pass=(?P<epoch>\d+)`}, labels: []string{"epoch 7", "epoch 8"}, program: `
print("Epoch 1/9")
print("pass=7")
` + pause + `
print("\033[1mpass=8\033[0m")
` + pause},
		{name: "own pattern of ends", flags: []string{"--epoch-end-pattern", `^done with pass (\d+)`},
			labels: []string{"epoch 1", "epoch 2"}, program: pause + `
print("done with pass 1")
` + pause + `
print("done with pass 2")
`},
		{name: "first batch", labels: []string{"epoch 0", "epoch 1"}, program: `
for epoch in range(2):
    time.sleep(0.5)
    print("Epoch: [%d][ 0/40]  Time 0.500 (0.500)  Data 0.490 (0.490)  Loss 6.9" % epoch)
    print("Epoch: [%d][39/40]  Time 0.001 (0.013)  Data 0.001 (0.012)  Loss 6.1" % epoch)
`},
		{name: "loads", flags: []string{"--load-begin", `opening (?P<model>\S+)`, "--load-end", "is open"}, program: `
print("opening a/b.gguf")
` + pause + `
print("opening c.gguf", file=sys.stderr)
` + pause + `
print("c.gguf is open")
print("a/b.gguf is open")
print("opening what is never there")
`, labels: []string{"model_load a/b.gguf", "model_load c.gguf"}},
		{name: "none", flags: []string{"--name", "plain"}, labels: []string{"custom plain"}, program: pause},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := reported(t, test.program, test.flags...)
			checkWindows(t, d, test.labels...)
			if d.Run.Duration < 0.3 {
				t.Errorf("the run took %v s", d.Run.Duration)
			}
		})
	}
}

// A model that is printed as the path of an existing file is a path. Otherwise it is a name.
func TestLoadOfAPrintedPath(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "m2.safetensors")
	if err := os.WriteFile(model, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := reported(t, `
for name in [`+strconv.Quote(model)+`, "/there/is/no.such"]:
    print("Loading weights [d7049739] from", name)
    time.sleep(0.4)
    print("Model loaded in 0.4s (load weights from disk: 0.3s, create model: 0.1s).")
`)
	checkWindows(t, d, "model_load "+model, "model_load /there/is/no.such")
	if l := d.Windows[0].Load; l == nil || l.Size != 3<<20 || l.Path != model {
		t.Errorf("of a file of 3 MiB: %+v", l)
	}
	if l := d.Windows[1].Load; l != nil && l.Size != 0 {
		t.Errorf("of nothing: %+v", l)
	}
}

// A load whose lines have no name gets that of the file which the program opened meanwhile.
func TestLoadOfAnOpenedFile(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "policy.safetensors")
	if err := os.WriteFile(model, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := reported(t, `
print("Loading model", flush=True)
file = open(`+strconv.Quote(model)+`, "rb")
time.sleep(0.4)
print("Model loaded", flush=True)
time.sleep(0.4)
`)
	checkWindows(t, d, "model_load "+model)
	if l := d.Windows[0].Load; l == nil || l.Path != model {
		t.Errorf("got %+v, want the path of the file", l)
	}
}

// Busy epochs and waiting epochs are distinguished, and unknown values are absent.
func TestLedgerOfAProgramWithoutAGPU(t *testing.T) {
	t.Parallel()
	d := reported(t, `
print("Epoch 1/2")
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
print("Epoch 2/2")
time.sleep(0.5)
`)
	checkWindows(t, d, "epoch 1", "epoch 2")
	for _, w := range d.Windows {
		if w.GPU != nil {
			t.Skip("this machine has a GPU: its ledger differs")
		}
		// Tests of other packages make disks and take them away, which interrupts any window.
		foreign := slices.ContainsFunc(w.Disks, func(d reportDisk) bool { return strings.HasPrefix(d.Name, "loop") })
		if w.Stall == nil || w.Process == nil || w.Interrupted && !foreign || w.Name != "" || w.Model != "" {
			t.Fatalf("got %+v, want the ledger of a process, without names", w)
		}
	}
	busy, idle := d.Windows[0], d.Windows[1]
	if busy.Process.OnCPU+busy.Stall.Ready < 0.25 || idle.Process.OnCPU > idle.Duration/2 {
		t.Errorf("on the CPU: %v s of %v s busy, %v s of %v s asleep",
			busy.Process.OnCPU, busy.Duration, idle.Process.OnCPU, idle.Duration)
	}
}

func TestEpochThatAFailureCut(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/report.json"
	v := stallspan(t, "run", "--report", path, "--", "sh", "-c",
		"echo Epoch 1/9; sleep 0.1; echo Epoch 2/9; sleep 0.1; exit 1")
	if code := v.run(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	d := readReport(t, path)
	if len(d.Windows) != 2 || d.Windows[0].Unfinished || !d.Windows[1].Unfinished {
		t.Errorf("got %+v, want two windows, the second one cut", d.Windows)
	}
	if !strings.Contains(v.err.String(), "epoch 2 (part) ") {
		t.Errorf("table: %s", v.err.String())
	}
}

func TestPythonIsNotBuffered(t *testing.T) {
	for set, want := range map[string]string{"": "[1]", "x": "[x]"} {
		v := stallspan(t, "run", "--", "sh", "-c", "echo [$PYTHONUNBUFFERED]")
		if set != "" {
			v.Env = append(v.Env, "PYTHONUNBUFFERED="+set)
		}
		if code := v.run(); code != 0 || v.out.String() != want+"\n" {
			t.Errorf("%q: exit code %d: %s", set, code, v.out.String())
		}
	}
}
