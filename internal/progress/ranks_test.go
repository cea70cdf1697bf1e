package progress

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// printed is a line with its time, in lengths of an epoch.
type printed struct {
	at   float64
	line string
}

// begunAt is an epoch of a reader.
type begunAt struct {
	epoch    int
	from, to float64
}

// rankFormats print the lines of one epoch: line i of n.
var rankFormats = map[string]struct {
	options Options
	line    func(epoch, i, n int) string
}{
	"Keras": {Options{}, func(epoch, i, _ int) string {
		return at(i == 0, fmt.Sprintf("Epoch %d/9", epoch))
	}},
	"ImageNet": {Options{}, func(epoch, i, n int) string {
		return fmt.Sprintf("Epoch: [%d][%3d/%d]\tTime  0.315 ( 0.372)", epoch, i, n)
	}},
	"bar": {Options{}, func(epoch, i, n int) string {
		return fmt.Sprintf("Epoch %d: %3d%%|███ | %d/%d [00:01<00:02,  2.00it/s]", epoch, 100*i/n, i, n)
	}},
	"steps of the epoch": {Options{}, func(epoch, i, _ int) string {
		return fmt.Sprintf("epoch=%d step=%d loss=0.5", epoch, i)
	}},
	"steps of the training": {Options{}, func(epoch, i, n int) string {
		return fmt.Sprintf("epoch=%d global_step=%d loss=0.5", epoch, epoch*n+i)
	}},
	"summary": {Options{}, func(epoch, i, n int) string {
		return at(i == n-1, fmt.Sprintf("Epoch %d: loss 0.5", epoch))
	}},
	"Hugging Face": {Options{}, func(epoch, i, n int) string {
		return fmt.Sprintf("{'loss': 1.5, 'epoch': %.3f}", float64(epoch-1)+float64(i)/float64(n))
	}},
}

func at(shown bool, line string) string {
	if !shown {
		return "warming up"
	}
	return line
}

// job prints trainings one after another, on several ranks. Each line of a rank is late by up to skew.
func job(r *rand.Rand, line func(epoch, i, n int) string, trainings []int, perEpoch, ranks int, skew float64,
	prefix bool) []printed {
	var all []printed
	for rank := range ranks {
		past, last := 0, 0.0
		for _, epochs := range trainings {
			for e := range epochs {
				for i := range perEpoch {
					due := float64(past) + float64(i)/float64(perEpoch)
					last = max(last, due+skew*r.Float64())
					text := line(e+1, i, perEpoch)
					if prefix {
						text = fmt.Sprintf("[rank%d]: %s", rank, text)
					}
					all = append(all, printed{last, text})
				}
				past++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b printed) int { return cmp.Compare(a.at, b.at) })
	return all
}

func epochsOf(t *testing.T, options Options, lines []printed) (got []begunAt) {
	t.Helper()
	reader, err := NewReader(options)
	if err != nil {
		t.Fatal(err)
	}
	take := func(events []Event) {
		for _, e := range events {
			if e.Kind == EpochEnd {
				got = append(got, begunAt{e.Epoch, e.From.Seconds(), e.To.Seconds()})
			}
		}
	}
	for _, l := range lines {
		take(reader.Line(seconds(l.at), []byte(l.line)))
	}
	take(reader.Close(seconds(lines[len(lines)-1].at)))
	return got
}

// Several ranks that print the same lines have the epochs of one, each within the ranks' skew. Two trainings one after
// another stay two.
func TestRanksAreOneTraining(t *testing.T) {
	for name, format := range rankFormats {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(400) {
				r := rand.New(rand.NewPCG(seed, 1))
				trainings := []int{2 + r.IntN(4), 2 + r.IntN(4)}[:1+r.IntN(2)]
				perEpoch, ranks, skew, prefix := 2+r.IntN(9), 2+r.IntN(7), 0.999*r.Float64(), r.IntN(3) == 0
				one := epochsOf(t, format.options, job(r, format.line, trainings, perEpoch, 1, 0, false))
				lines := job(r, format.line, trainings, perEpoch, ranks, skew, prefix)
				many := epochsOf(t, format.options, lines)
				if err := sameEpochs(many, one, skew, skew+1/float64(perEpoch)); err != "" {
					t.Fatalf("seed %d: trainings %v, %d lines each, %d ranks, skew %.3f, prefix %v: %s\ngot  %v\nwant %v\n%s", seed,
						trainings, perEpoch, ranks, skew, prefix, err, many, one, listed(lines))
				}
			}
		})
	}
}

func sameEpochs(got, want []begunAt, skew, endSkew float64) string {
	if len(got) != len(want) {
		return fmt.Sprintf("got %d epochs, want %d", len(got), len(want))
	}
	for i := range got {
		if g, w := got[i], want[i]; g.epoch != w.epoch || math.Abs(g.from-w.from) > skew || math.Abs(g.to-w.to) > endSkew {
			return fmt.Sprintf("got %v, want %v", g, w)
		}
	}
	return ""
}

func listed(lines []printed) string {
	var s strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&s, "%.3f %s\n", l.at, l.line)
	}
	return s.String()
}

func TestCutRank(t *testing.T) {
	for line, want := range map[string]string{
		"[rank0]: Epoch 1/10":              "Epoch 1/10",
		"[rank 3] Epoch 1/10":              "Epoch 1/10",
		"[default0]:Epoch 1/10":            "Epoch 1/10",
		"[trainer1]: Epoch 1/10":           "Epoch 1/10",
		"0: Epoch 1/10":                    "Epoch 1/10",
		" 7: Epoch 1/10":                   "Epoch 1/10",
		"[1,0]<stdout>:Epoch 1/10":         "Epoch 1/10",
		"[1,2]<stderr>: Epoch 1/10":        "Epoch 1/10",
		"[prterun-a-12@1,0]<stdout>: x":    "x",
		"(TrainWorker pid=12) x":           "x",
		"(T pid=12, ip=10.0.0.3) x":        "x",
		"Epoch: [0][  10/5005]":            "Epoch: [0][  10/5005]",
		"[Epoch 1]":                        "[Epoch 1]",
		"[12:30:01] Epoch 1":               "[12:30:01] Epoch 1",
		"[2020-05-08 18:56:16] Epoch 1":    "[2020-05-08 18:56:16] Epoch 1",
		"10:30:01 INFO Epoch 1":            "10:30:01 INFO Epoch 1",
		"  1/100  2.21G  1.215 23 640: 12": "  1/100  2.21G  1.215 23 640: 12",
	} {
		if _, got := cutRank([]byte(line)); string(got) != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// A rank that falls silent is replaced.
func TestSilentRank(t *testing.T) {
	var r ranks
	if !r.heard([]byte("[rank0]:")) || r.heard([]byte("[rank1]:")) || !r.heard([]byte("[rank0]:")) {
		t.Error("got another rank than the first, want the first")
	}
	n := 1
	for ; !r.heard([]byte("[rank1]:")); n++ {
		if n > 2*maxUnheard {
			break
		}
	}
	if n != maxUnheard+1 || r.heard([]byte("[rank0]:")) {
		t.Errorf("rank 1 was heard after %d lines, want %d", n, maxUnheard+1)
	}
}
