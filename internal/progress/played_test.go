package progress

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wanted are the windows of a played log: number or null, begin or null, end in seconds since the program's start.
type wanted struct {
	Epochs [][3]*float64 `json:"epochs"`
	Loads  [][3]*float64 `json:"loads"`
	Every  int           `json:"every"`
	Within float64       `json:"within"`
}

// play reads a log whose lines are SECONDS|TEXT. U+240D at the end of a line is a carriage return, U+241B is ESC.
func play(t testing.TB, path string) (epochs, loads []Event) {
	t.Helper()
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var now time.Duration
	take := func(events []Event) {
		for _, e := range events {
			switch e.Kind {
			case EpochEnd:
				epochs = append(epochs, e)
			case LoadEnd:
				loads = append(loads, e)
			}
		}
	}
	lines := NewLines(func(line []byte) { take(r.Line(now, line)) })
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(data)) {
		at, text, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "|")
		s, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Fatal(err)
		}
		now = seconds(s)
		text, bar := strings.CutSuffix(text, "␍")
		text = strings.ReplaceAll(text, "␛", "\x1b")
		if bar {
			text += "\r"
		} else {
			text += "\n"
		}
		_, _ = lines.Write([]byte(text))
	}
	lines.Close()
	take(r.Close(now + 20*time.Millisecond))
	return epochs, loads
}

func matches(got []Event, want [][3]*float64, within float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i, w := range want {
		g := got[i]
		if w[0] != nil && float64(g.Epoch) != *w[0] ||
			w[1] != nil && math.Abs(g.From.Seconds()-*w[1]) > within || w[2] != nil && math.Abs(g.To.Seconds()-*w[2]) > within {
			return false
		}
	}
	return true
}

func shown(events []Event) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, " #%d %.2f..%.2f", e.Epoch, e.From.Seconds(), e.To.Seconds())
		if e.Epochs > 1 {
			fmt.Fprintf(&s, " x%d", e.Epochs)
		}
	}
	return s.String()
}

func TestPlayed(t *testing.T) {
	dir := "testdata/played"
	if other := os.Getenv("PLAYED"); other != "" {
		dir = other
	}
	data, err := os.ReadFile(filepath.Join(dir, "want.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]wanted
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			epochs, loads := play(t, filepath.Join(dir, name))
			within := want.Within
			if within == 0 {
				within = 0.35
			}
			right := true
			if want.Every > 0 {
				for _, e := range epochs {
					right = right && e.Epochs == want.Every
				}
			} else if want.Epochs != nil {
				right = matches(epochs, want.Epochs, within)
			}
			if want.Loads != nil {
				right = right && matches(loads, want.Loads, within)
			}
			if !right {
				text, _ := json.Marshal(want)
				t.Errorf("epochs%s; loads%s\nwant %s", shown(epochs), shown(loads), text)
			}
		})
	}
}
