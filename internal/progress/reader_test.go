package progress

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLineVariants(t *testing.T) {
	for line, want := range map[string]string{
		"Epoch [1/10]":           "begins 1 of 10",
		"Epoch: 1/10":            "begins 1 of 10",
		"Epoch 1 of 10":          "begins 1 of 10",
		"EPOCH 1/10":             "begins 1 of 10",
		"epoch: 1/10":            "begins 1 of 10",
		"epoch=1":                "begins 1",
		"epoch 0":                "begins 0",
		"[Epoch 1]":              "begins 1",
		"Epoch 007:":             "begins 7",
		"--- Epoch #4 ---":       "begins 4",
		"Epoch 3 started":        "begins 3",
		"Starting epoch 3":       "begins 3",
		"Begin Training Epoch 2": "begins 2",
		"INFO:root:Epoch 3":      "begins 3",
		"2024-01-01 10:00:00,123 - __main__ - INFO - Epoch 1/10":                "begins 1 of 10",
		"2024-01-01 10:00:00.123 | INFO     | __main__:train:42 - Epoch 1/10":   "begins 1 of 10",
		"[10:12:33] INFO     Epoch 1/10                        train.py:33":     "begins 1 of 10",
		"I0501 10:50:06.550601 11894 train.py:459] Epoch 3":                     "begins 3",
		"2024-01-01T10:00:00.5Z Epoch 3":                                        "begins 3",
		"worker-0 | Epoch 1/10":                                                 "begins 1 of 10",
		"[rank0]: Epoch 1/10":                                                   "begins 1 of 10",
		"Epoch 1/10:  50%|█████     | 5/10 [00:05<00:05,  1.00it/s]":            "progress 0.5 1 of 10",
		"Train Epoch: [3][ 12/24]":                                              "progress 0.5 3",
		"[04/21 06:14:31] ppdet.engine INFO: Epoch: [0] [ 60/120] lr: 0.1":      "progress 0.5 0",
		"Epoch 2, batch 30 of 60, loss 0.3":                                     "progress 0.5 2",
		"epoch=2 global_step=100 loss=0.3":                                      "progress 100 2",
		"Epoch 3 took 12.3s":                                                    "ends 3",
		"2022-07-20 06:31:44,244 - INFO: ===> Epoch 103 Complete: Avg. Loss: 0": "ends 103",
		"epoch 0: {'accuracy': 0.68, 'f1': 0.81}":                               "ends 0",
		"Epoch 0/9 loss: 2.3010":                                                "ends 0 of 9",
		"[rank0]: {'loss': 1.5, 'epoch': 0.25}":                                 "amount 0.25",
		"{'loss': 1.5, 'epoch': 8e-05}":                                         "amount 8e-05",
	} {
		var x text
		rank, rest := cutRank([]byte(line))
		x.line, x.tokens = rest, scan(nil, rest)
		o := x.observe(0, -1)
		role := "ends"
		switch {
		case !o.numbered:
			role = "none"
		case o.amount:
			role = "amount"
		case o.begins:
			role = "begins"
		case o.place.known:
			role = fmt.Sprintf("progress %.4g", o.place.part())
		}
		got := fmt.Sprintf("%s %.4g", role, o.number)
		if o.total > 0 {
			got += fmt.Sprintf(" of %d", o.total)
		}
		if got != want {
			t.Errorf("%q (rank %q): got %q, want %q", line, rank, got, want)
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
			want:  "1:1-3 2:3-4 1:4-5",
		},
		"a load that failed": {
			lines: "Loading model from /m/a.pt\n  Failed to load model /m/a.pt: out of memory\n" +
				"Loading model from /m/b.pt\nModel loaded",
			want: "</m/a.pt >/m/a.pt: Failed to load model /m/a.pt: out of memory </m/b.pt >/m/b.pt",
		},
		"the first framework stays": {
			lines: "Epoch 1/2\n{'loss': 1, 'epoch': 1.5}\nepoch=7 step=3\nEpoch 2/2",
			want:  "1:1-4 2:4-5",
		},
		"the finished bar again, then a second fit": {
			lines: "Epoch 0: 100%|██| 4/4 [\nEpoch 1:   0%|  | 0/4 [\nEpoch 0: 100%|██| 4/4 [\nEpoch 1:  25%|  | 1/4 " +
				"[\nEpoch 0:   0%|  | 0/4 [",
			want: "0:0-1 1:1-4.5 0:4.5-6",
		},
		"a late rank, then the second fold, whose first line is later": {
			lines: "Epoch: [0][0/9]\nEpoch: [0][8/9]\nEpoch: [1][0/9]\nEpoch: [0][8/9]\nEpoch: [1][8/9]\nEpoch: [0][1/9]",
			want:  "0:0-2 1:2-5 0:5-7",
		},
		"own pattern, late lines without a place in the epoch": {
			lines:   "pass 1\npass 1\npass 2\npass 1\npass 2\npass 3\npass 2\npass 1",
			options: Options{EpochPattern: `pass (\d+)`},
			want:    "1:1-3 2:3-6 3:6-8 1:8-9",
		},
		"own pattern with a label": {
			lines:   "[rank1]: pass 1\n[rank0]: pass 1\n[rank1]: pass 2\n[rank0]: pass 1",
			options: Options{EpochPattern: `^pass (\d+)`},
			want:    "1:1-3 2:3-5",
		},
		"own pattern of the label": {
			lines:   "[rank0]: pass 1\n[rank1]: pass 2",
			options: Options{EpochPattern: `^\[rank0\]: pass (\d+)`},
			want:    "1:1-3",
		},
		"the end of training by two ranks": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}\n" +
				"{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}",
			want: "0:0-3",
		},
		"training ends at a whole epoch": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 1.0}\n{'train_runtime': 3, 'epoch': 1.0}\n{'eval_loss': " +
				"1, 'epoch': 1.0}",
			want: "0:0-2",
		},
		"killed at a whole epoch": {
			lines: "{'loss': 1, 'epoch': 0.5}\n{'loss': 1, 'epoch': 1.0}",
			want:  "0:0-2",
		},
		"training ends within an epoch": {
			lines: "{'loss': 1, 'epoch': 0.04}\n{'loss': 1, 'epoch': 0.1}\n{'train_runtime': 3, 'epoch': 0.1}",
			want:  "0:0.333333334-2",
		},
		"evaluation at the same amount": {
			lines: "{'loss': 1, 'epoch': 0.9}\n{'loss': 1, 'epoch': 1.0}\n{'eval_loss': 1, 'epoch': 1.0}\n{'loss': 1, " +
				"'epoch': 1.5}",
			want: "0:0-2 1:3-5",
		},
		"a second training": {
			lines: "{'loss': 1, 'epoch': 0.9}\n{'train_runtime': 3, 'epoch': 1.0}\n{'loss': 1, 'epoch': 0.5}",
			want:  "0:0-2 0:2-4",
		},
		"summaries": {
			lines: "Epoch 1: loss 0.5\nEpoch 1: val_loss 0.5\nEpoch 2: loss 0.5",
			want:  "1:0-1 2:2-3",
		},
		"a table's rows, after its heading": {
			lines: "2  0.5  00:03\nepoch     train_loss  time\n0         0.500000    00:03\n1         0.400000    00:02",
			want:  "0:0-3 1:3-4",
		},
		"own pattern, named group": {
			lines:   "Epoch 1/10\npass 3 of round 7\npass 4 of round 7\npass 1 of round 8",
			options: Options{EpochPattern: `pass (\d+) of round (?P<epoch>\d+)`},
			want:    "7:2-4 8:4-5",
		},
		"own pattern, first group": {
			lines:   "pass 3\npass 4\npass x",
			options: Options{EpochPattern: `pass (\w+)`},
			want:    "3:1-2 4:2-4",
		},
		"own pattern, counted": {
			lines:   "next pass\nnext pass",
			options: Options{EpochPattern: `^next pass`},
			want:    "0:1-2 1:2-3",
		},
		"own pattern, amounts": {
			lines:   "done 0.5\ndone 1.5",
			options: Options{EpochPattern: `done ([\d.]+)`},
			want:    "0:0-1.5 1:1.5-3",
		},
		"own pattern, out of range": {
			lines:   "pass -1\npass 99999999999\npass 1e300\npass NaN",
			options: Options{EpochPattern: `pass (\S+)`},
			want:    "",
		},
		"two models at once": {
			lines: `I0 1 m.cc:1] loading: a:1` + "\n" + `I0 1 m.cc:1] loading: b:1` + "\n" + `I0 1 m.cc:1] loading: a:2` + "\n" +
				`I0 1 m.cc:1] successfully loaded 'a' version 1` + "\n" + `I0 1 m.cc:1] successfully loaded 'c' version 1`,
			want: "<a <b >a void b",
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
			want:  "< > 1:3-4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(test.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			n := 1
			for line := range strings.Lines(test.lines) { // one a second
				for _, e := range r.Line(seconds(float64(n)), []byte(strings.TrimSuffix(line, "\n"))) {
					got = append(got, short(e))
				}
				n++
			}
			for _, e := range r.Close(seconds(float64(n))) {
				got = append(got, short(e))
			}
			got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("got  %s\nwant %s", s, test.want)
			}
		})
	}
}

func short(e Event) string {
	switch e.Kind {
	case EpochEnd:
		return fmt.Sprintf("%d:%g-%g", e.Epoch, e.From.Seconds(), e.To.Seconds())
	case LoadBegin:
		return "<" + e.Model
	case LoadEnd:
		if e.Failed != "" {
			return ">" + e.Model + ": " + e.Failed
		}
		return ">" + e.Model
	case LoadDrop:
		return "void " + e.Model
	}
	return ""
}

func TestLoadsAreBounded(t *testing.T) {
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for i := range 2 * maxLoads {
		begun += len(r.Line(time.Duration(i), fmt.Appendf(nil, "I0 1 m.cc:1] loading: model%d:1", i)))
	}
	if begun != maxLoads || len(r.Close(0)) != maxLoads {
		t.Errorf("%d loads begun, want %d", begun, maxLoads)
	}
}

// The state has a fixed size: after the lines in which a hint is sought, no line is kept.
func TestReaderAllocatesNothing(t *testing.T) {
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for i := range 5000 {
		lines = append(lines, fmt.Appendf(nil, "%c%x took 1.5 s, step %d of %d, loading 3/4 [00:01<00:02] epoch best %d",
			'a'+i%26, i*7919, i, i+3, i))
	}
	for _, line := range lines[:hintLines] {
		r.Line(0, line)
	}
	i := hintLines
	if n := testing.AllocsPerRun(len(lines)-hintLines-1, func() { r.Line(time.Duration(i), lines[i]); i++ }); n != 0 {
		t.Errorf("%v allocations for a line, want none", n)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{EpochPattern: `Epoch (\d+`}, `--epoch-pattern "Epoch (\\d+": missing closing ) in "Epoch (\\d+"`},
		{Options{EpochPattern: `Épo[(]h) 1`}, `--epoch-pattern "Épo[(]h) 1": unexpected ) in "Épo[(]h) 1"`},
		{Options{EpochPattern: `Epoch [0-9`}, `missing closing ] in "[0-9"`},
		{Options{EpochPattern: `Epoch \y`}, `invalid escape sequence in "\\y"`},
		{Options{EpochPattern: `Epoch **`}, `invalid nested repetition operator in "**"`},
		{Options{EpochPattern: `Epoch\`}, `trailing backslash at end of expression in ""`},
		{Options{EpochPattern: `Epoch (?=\d)`}, `invalid or unsupported Perl syntax in "(?="`},
		{Options{EpochPattern: `\d*`}, `--epoch-pattern "\\d*" matches every line`},
		{Options{LoadBegin: `x(`, LoadEnd: `y`}, `--load-begin "x(": missing closing ) in "x("`},
		{Options{LoadBegin: `x`, LoadEnd: `y(`}, `--load-end "y(": missing closing ) in "y("`},
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
	now, lastTo time.Duration
	open        bool
	loads       int
}

func (c *checkEvents) add(t *testing.T, e Event) {
	t.Helper()
	if e.From < 0 || e.From > c.now || e.To > c.now || e.Epoch < 0 || len(e.Model) > maxModel ||
		!utf8.ValidString(e.Model) {
		t.Fatalf("event %+v at %v", e, c.now)
	}
	switch e.Kind {
	case EpochBegin:
		if c.open || e.From < c.lastTo {
			t.Fatalf("%+v, open %v, after %v", e, c.open, c.lastTo)
		}
		c.open = true
	case EpochEnd:
		if e.From < c.lastTo || e.To < e.From || e.Epochs < 1 {
			t.Fatalf("%+v after %v", e, c.lastTo)
		}
		c.open, c.lastTo = false, e.To
	case EpochDrop:
		if !c.open {
			t.Fatalf("%+v, which is not open", e)
		}
		c.open = false
	case LoadBegin:
		c.loads++
	case LoadEnd, LoadDrop:
		c.loads--
	default:
		t.Fatalf("kind %d", e.Kind)
	}
	if c.loads < 0 || c.loads > maxLoads {
		t.Fatalf("event %+v, %d loads open", e, c.loads)
	}
}

// TestQuotedCode: the source that a traceback or a warning of Python prints says nothing of what happens.
func TestQuotedCode(t *testing.T) {
	for _, text := range []string{
		"Traceback (most recent call last):\n  File \"/x/train.py\", line 2, in <module>\n" +
			"    print(\"Loading model from /m/a.gguf\")\n    ^^^^^\nRuntimeError: x",
		"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 2, in main\n" +
			"[rank1]:     log(\"Epoch 1/2\")\n[rank1]: ValueError: x",
		"/x/train.py:30: FutureWarning: the default of weights_only changes\n  print('Loading checkpoint a.pt')",
	} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(text, "\n") {
			if got := r.Line(time.Duration(i)*time.Second, []byte(line)); len(got) > 0 {
				t.Errorf("%q: got %+v, want nothing", line, got)
			}
		}
		if got := r.Line(time.Minute, []byte("Loading checkpoint a.pt")); len(got) == 0 {
			t.Errorf("after %q: got no event of a load", text)
		}
	}
}

// TestAnyAlphabet: a letter may be shorter or longer in lower case, as U+0130 and U+023A are.
func TestAnyAlphabet(t *testing.T) {
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for c := rune(0x80); c < 0x800; c++ {
		for _, format := range []string{"%cEpoch_End", "on%cEpoch%cEnd 3", "Epoch_%c%c: 1/3", "load%c_Model%c %cx"} {
			line := fmt.Appendf(nil, strings.ReplaceAll(format, "%c", "%[1]c"), c)
			_ = r.Line(time.Duration(c)*time.Second, line)
			if low, name := lower(nil, line), line; len(low) != len(name) {
				t.Fatalf("%q: got %d bytes in lower case, want %d", line, len(low), len(name))
			}
		}
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
				check.now += 300 * time.Millisecond
				for _, e := range r.Line(check.now, line) {
					check.add(t, e)
				}
			}
			for _, e := range r.Close(check.now) {
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
				r.Line(0, line)
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
			lines := NewLines(func(line []byte) { r.Line(0, line) })
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = lines.Write(data)
			}
		})
	}
}
