package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineVariants(t *testing.T) {
	for line, want := range map[string]string{
		"Epoch [1/10]":           "EpochStart 1 of 10, 0 done",
		"Epoch: 1/10":            "EpochStart 1 of 10, 0 done",
		"Epoch 1 of 10":          "EpochStart 1 of 10, 0 done",
		"EPOCH 1/10":             "EpochStart 1 of 10, 0 done",
		"epoch: 1/10":            "EpochStart 1 of 10, 0 done",
		"epoch=1":                "EpochStart 1, 0 done",
		"epoch 0":                "EpochStart 0, 0 done",
		"[Epoch 1]":              "EpochStart 1, 0 done",
		"Epoch 007:":             "EpochStart 7, 0 done",
		"--- Epoch #4 ---":       "EpochStart 4, 0 done",
		"Epoch 3 started":        "EpochStart 3, 0 done",
		"Starting epoch 3":       "EpochStart 3, 0 done",
		"Begin Training Epoch 2": "EpochStart 2, 0 done",
		"INFO:root:Epoch 3":      "EpochStart 3, 0 done",
		"2024-01-01 10:00:00,123 - __main__ - INFO - Epoch 1/10":                "EpochStart 1 of 10, 0 done",
		"2024-01-01 10:00:00.123 | INFO     | __main__:train:42 - Epoch 1/10":   "EpochStart 1 of 10, 0 done",
		"[10:12:33] INFO     Epoch 1/10                        train.py:33":     "EpochStart 1 of 10, 0 done",
		"I0501 10:50:06.550601 11894 train.py:459] Epoch 3":                     "EpochStart 3, 0 done",
		"2024-01-01T10:00:00.5Z Epoch 3":                                        "EpochStart 3, 0 done",
		"worker-0 | Epoch 1/10":                                                 "EpochStart 1 of 10, 0 done",
		"[rank0]: Epoch 1/10":                                                   "EpochStart 1 of 10, 0 done",
		"Epoch 1/10:  50%|█████     | 5/10 [00:05<00:05,  1.00it/s]":            "EpochStart 1 of 10, 0.5 done",
		"Train Epoch: [3][ 12/24]":                                              "EpochStart 3, 0.5 done",
		"[04/21 06:14:31] ppdet.engine INFO: Epoch: [0] [ 60/120] lr: 0.1":      "EpochStart 0, 0.5 done",
		"Epoch 2, batch 30 of 60, loss 0.3":                                     "EpochStart 2, 0.5 done",
		"epoch=2 global_step=100 loss=0.3":                                      "EpochStart 2, 0 done",
		"Epoch 3 took 12.3s":                                                    "EpochEnd 3, 1 done",
		"2022-07-20 06:31:44,244 - INFO: ===> Epoch 103 Complete: Avg. Loss: 0": "EpochEnd 103, 1 done",
		"epoch 0: {'accuracy': 0.68, 'f1': 0.81}":                               "EpochEnd 0, 1 done",
		"Epoch 0/9 loss: 2.3010":                                                "EpochEnd 0 of 9, 1 done",
		"[rank0]: {'loss': 1.5, 'epoch': 0.25}":                                 "EpochStart 0, 0.25 done",
		"{'loss': 1.5, 'epoch': 8e-05}":                                         "EpochStart 0, 8e-05 done",
	} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.Line([]byte(line)) {
			got = append(got, render(e))
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %s", line, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	for name, test := range map[string]struct {
		lines   string
		want    string
		options Options
	}{
		"repeats are progress, a smaller number is a new run": {
			lines: "Epoch 1/2\nEpoch 1/2\nEpoch 2/2\nEpoch 1/2",
			want:  "+1 .1 -1 +2 -2 +1 -1",
		},
		"the first framework stays": {
			lines: "Epoch 1/2\n{'loss': 1, 'epoch': 1.5}\nepoch=7 step=3\nEpoch 2/2",
			want:  "+1 -1 +2 -2",
		},
		"the finished bar again, then a second fit": {
			lines: "Epoch 0: 100%|██| 4/4 [\nEpoch 1:   0%|  | 0/4 [\nEpoch 0: 100%|██| 4/4 [\nEpoch 1:  25%|  | 1/4 " +
				"[\nEpoch 0:   0%|  | 0/4 [",
			want: "+0 -0 +1 .1 -1 +0 -0",
		},
		"a late rank, then the second fold, whose first line is later": {
			lines: "Epoch: [0][0/9]\nEpoch: [0][8/9]\nEpoch: [1][0/9]\nEpoch: [0][8/9]\nEpoch: [1][8/9]\nEpoch: [0][1/9]",
			want:  "+0 .0 -0 +1 .1 -1 +0 -0",
		},
		"own pattern, late lines without a place in the epoch": {
			lines:   "pass 1\npass 1\npass 2\npass 1\npass 2\npass 3\npass 2\npass 1",
			options: Options{EpochPattern: `pass (\d+)`},
			want:    "+1 .1 -1 +2 .2 -2 +3 -3 +1 -1",
		},
		"own pattern with a label": {
			lines:   "[rank1]: pass 1\n[rank0]: pass 1\n[rank1]: pass 2\n[rank0]: pass 1",
			options: Options{EpochPattern: `^pass (\d+)`},
			want:    "+1 -1 +2 -2",
		},
		"own pattern of the label": {
			lines:   "[rank0]: pass 1\n[rank1]: pass 2",
			options: Options{EpochPattern: `^\[rank0\]: pass (\d+)`},
			want:    "+1 -1",
		},
		"the end of training by two ranks": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}\n" +
				"{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}",
			want: "+0 .0 -0",
		},
		"training ends at a whole epoch": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 1.0}\n{'train_runtime': 3, 'epoch': 1.0}\n{'eval_loss': " +
				"1, 'epoch': 1.0}",
			want: "+0 -0 +1 -1(void)",
		},
		"killed at a whole epoch": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 1.0}",
			want:  "+0 -0 +1 -1(void)",
		},
		"training ends within an epoch": {
			lines: "{'loss': 1, 'epoch': 0.04}\n{'loss': 1, 'epoch': 0.1}\n{'train_runtime': 3, 'epoch': 0.1}",
			want:  "+0 .0 -0",
		},
		"evaluation at the same amount": {
			lines: "{'loss': 1, 'epoch': 0.9}\n{'loss': 1, 'epoch': 1.0}\n{'eval_loss': 1, 'epoch': 1.0}\n{'loss': 1, " +
				"'epoch': 1.5}",
			want: "+0 -0 +1 .1 .1 -1",
		},
		"a second training": {
			lines: "{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}\n{'loss': 1, 'epoch': 0.5}",
			want:  "+0 -0 +0 -0",
		},
		"summaries": {
			lines: "Epoch 1: loss 0.5\nEpoch 1: val_loss 0.5\nEpoch 2: loss 0.5",
			want:  "-1 -2",
		},
		"a table's rows, after its heading": {
			lines: "2  0.5  00:03\nepoch     train_loss  time\n0         0.500000    00:03\n1         0.400000    00:02",
			want:  "-0 -1",
		},
		"own pattern, named group": {
			lines:   "Epoch 1/10\npass 3 of round 7\npass 4 of round 7\npass 1 of round 8",
			options: Options{EpochPattern: `pass (\d+) of round (?P<epoch>\d+)`},
			want:    "+7 .7 -7 +8 -8",
		},
		"own pattern, first group": {
			lines:   "pass 3\npass 4\npass x",
			options: Options{EpochPattern: `pass (\w+)`},
			want:    "+3 -3 +4 -4",
		},
		"own pattern, counted": {
			lines:   "next pass\nnext pass",
			options: Options{EpochPattern: `^next pass`},
			want:    "+0 -0 +1 -1",
		},
		"own pattern, amounts": {
			lines:   "done 0.5\ndone 1.5",
			options: Options{EpochPattern: `done ([\d.]+)`},
			want:    "+0 -0 +1 -1",
		},
		"own pattern, out of range": {
			lines:   "pass -1\npass 99999999999\npass 1e300\npass NaN",
			options: Options{EpochPattern: `pass (\S+)`},
			want:    "",
		},
		"two models at once": {
			lines: `I0 1 m.cc:1] loading: a:1` + "\n" + `I0 1 m.cc:1] loading: b:1` + "\n" + `I0 1 m.cc:1] loading: a:2` + "\n" +
				`I0 1 m.cc:1] successfully loaded 'a' version 1` + "\n" + `I0 1 m.cc:1] successfully loaded 'c' version 1`,
			want: "<a <b >a >b(void)",
		},
		"own load patterns": {
			lines:   "Starting to load model x...\nopening m1\nopening m2\nready\nready\nready",
			options: Options{LoadBegin: `^opening (?P<model>\S+)`, LoadEnd: `^ready`},
			want:    "<m1 <m2 >m2 >m1",
		},
		"a name on the end alone": {
			lines:   "opening\nready m1",
			options: Options{LoadBegin: `^opening`, LoadEnd: `^ready (?P<model>\S+)`},
			want:    "< >m1",
		},
		"loads and epochs": {
			lines: "Loading weights:   0%|  | 0/9 [\nLoading weights: 100%|██| 9/9 [\nEpoch 1/2",
			want:  "< > +1 -1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(test.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(test.lines) {
				for _, e := range r.Line([]byte(strings.TrimSuffix(line, "\n"))) {
					got = append(got, short(e))
				}
			}
			for _, e := range r.Close() {
				got = append(got, short(e))
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("got  %s\nwant %s", s, test.want)
			}
		})
	}
}

func short(e Event) string {
	s := ""
	switch e.Kind {
	case EpochStart:
		s = fmt.Sprintf("+%d", e.Epoch)
	case EpochProgress:
		s = fmt.Sprintf(".%d", e.Epoch)
	case EpochEnd:
		s = fmt.Sprintf("-%d", e.Epoch)
	case LoadBegin:
		s = "<" + e.Model
	case LoadEnd:
		s = ">" + e.Model
	}
	if e.Void {
		s += "(void)"
	}
	return s
}

func TestLoadsAreBounded(t *testing.T) {
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for i := range 2 * maxLoads {
		begun += len(r.Line(fmt.Appendf(nil, "I0 1 m.cc:1] loading: model%d:1", i)))
	}
	if begun != maxLoads || len(r.Close()) != maxLoads {
		t.Errorf("%d loads begun, want %d", begun, maxLoads)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{EpochPattern: `Epoch (\d+`}, `--epoch-pattern "Epoch (\\d+": missing closing ) at character 7`},
		{Options{EpochPattern: `Épo[(]h) 1`}, `--epoch-pattern "Épo[(]h) 1": unexpected ) at character 8`},
		{Options{EpochPattern: `Epoch [0-9`}, `missing closing ] at character 7`},
		{Options{EpochPattern: `Epoch \y`}, `invalid escape sequence at character 7`},
		{Options{EpochPattern: `Epoch **`}, `invalid nested repetition operator at character 7`},
		{Options{EpochPattern: `Epoch\`}, `trailing backslash at end of expression at character 6`},
		{Options{EpochPattern: `Epoch (?=\d)`}, `invalid or unsupported Perl syntax at character 7`},
		{Options{EpochPattern: `\d*`}, `--epoch-pattern "\\d*" matches every line`},
		{Options{LoadBegin: `x(`, LoadEnd: `y`}, `--load-begin "x(": missing closing ) at character 2`},
		{Options{LoadBegin: `x`, LoadEnd: `y(`}, `--load-end "y(": missing closing ) at character 2`},
		{Options{LoadBegin: `x`}, `--load-end is missing`},
		{Options{LoadEnd: `x`}, `--load-begin is missing`},
	} {
		_, err := NewReader(test.options)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v\nwant %s", test.options, err, test.want)
		}
	}
}

// checkEvents checks what holds for any output: epochs do not overlap, a load ends only after it began, and every value
// is in its range.
type checkEvents struct {
	open  bool
	epoch int
	loads int
}

func (c *checkEvents) add(t *testing.T, e Event) {
	t.Helper()
	switch e.Kind {
	case EpochStart:
		if c.open {
			t.Fatalf("epoch %d starts within epoch %d", e.Epoch, c.epoch)
		}
		c.open, c.epoch = true, e.Epoch
	case EpochProgress, EpochEnd:
		if (c.open || e.Kind == EpochProgress) && (!c.open || e.Epoch != c.epoch) {
			t.Fatalf("%v, open %v %d", e, c.open, c.epoch)
		}
		c.open = c.open && e.Kind == EpochProgress
	case LoadBegin:
		c.loads++
	case LoadEnd:
		c.loads--
	default:
		t.Fatalf("kind %d", e.Kind)
	}
	if !(e.Fraction >= 0 && e.Fraction <= 1) || e.Epoch < 0 || e.Total < 0 || c.loads < 0 || c.loads > maxLoads ||
		len(e.Model) > maxModel || !utf8.ValidString(e.Model) {
		t.Fatalf("event %+v, %d loads open", e, c.loads)
	}
}

func FuzzLine(f *testing.F) {
	for _, path := range transcripts(f) {
		f.Add(read(f, path))
	}
	own := Options{EpochPattern: `poch (?P<epoch>\S*)`, LoadBegin: `load(?P<model>.*)`, LoadEnd: `done(?P<model>.*)`}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, options := range []Options{{}, own} {
			r, err := NewReader(options)
			if err != nil {
				t.Fatal(err)
			}
			var check checkEvents
			for line := range bytes.Lines(data) {
				for _, e := range r.Line(line) {
					check.add(t, e)
				}
			}
			for _, e := range r.Close() {
				check.add(t, e)
			}
			if check.open || check.loads != 0 {
				t.Fatalf("still open after Close: %+v", check)
			}
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{"nothing in it", "2026-06-07 12:00:00,123 worker-3 step 001234 tokens/s 51234.2 loss 2.3451 lr 3.0e-04 mem 71.2G"},
		{"speaks of an epoch", "2026-06-07 12:00:00,123 worker-3 the best epoch so far was 12, saving nothing this time"},
		{"a bar", "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=3]"},
		{"Keras", "Epoch 1/10"},
	} {
		b.Run(test.name, func(b *testing.B) {
			r, err := NewReader(Options{})
			if err != nil {
				b.Fatal(err)
			}
			line := []byte(test.line)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				r.Line(line)
			}
		})
	}
}

// This measures Lines and Reader together, on the input of BenchmarkLines.
func BenchmarkOutput(b *testing.B) {
	for name, data := range map[string][]byte{"plain": output(false), "colour": output(true)} {
		b.Run(name, func(b *testing.B) {
			r, err := NewReader(Options{})
			if err != nil {
				b.Fatal(err)
			}
			lines := NewLines(func(line []byte) { r.Line(line) })
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = lines.Write(data)
			}
		})
	}
}
