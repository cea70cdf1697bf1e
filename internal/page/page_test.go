package page

import (
	"bytes"
	"encoding/json"
	"html"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/test/fixture/tape"
)

// replayed is a monitor that was fed with a recording of a GPU.
func replayed(t *testing.T) *monitor.Monitor {
	t.Helper()
	return tape.Play(t, filepath.Join("..", "..", "testdata", "recordings", "gpu.jsonl.gz"),
		func(*monitor.Monitor, *recording.Entry) {})
}

// span is the time that a history covers.
func span(t *testing.T, h *history.History) (start, end time.Duration) {
	t.Helper()
	start, ok := oldest(h)
	if !ok {
		t.Fatal("the history is empty")
	}
	end, _ = h.Last(history.DiskReadBytes)
	return start, end
}

func TestCurvesAddUp(t *testing.T) {
	h := replayed(t).History()
	start, end := span(t, h)
	c := NewCurves(h, Ceilings{"vda": 1e9}, start, end)
	if c.Start != 0 || c.Step < 0.1 {
		t.Errorf("got a start of %v s and a step of %v s, want 0 and at least 0.1", c.Start, c.Step)
	}
	titles := map[string]*Panel{}
	for i := range c.Panels {
		titles[c.Panels[i].Title] = &c.Panels[i]
	}
	disk := titles["Disk throughput"]
	if disk == nil || len(disk.Lines) == 0 || disk.Lines[0].Name != "vda read" {
		t.Fatalf("got %+v, want a panel of disks that begins with the reads of vda", disk)
	}
	values, step := disk.Lines[0].Values, time.Duration(math.Round(c.Step*1e9))
	first := slices.IndexFunc(values, func(x float64) bool { return !math.IsNaN(x) })
	want, ok := h.Between(history.Key{Series: history.DiskReadBytes, ID: "vda"},
		history.Point{At: start + time.Duration(first)*step}, history.Point{At: start + time.Duration(len(values))*step})
	if got := values.sum() * c.Step; !ok || first > 2 || math.Abs(got-want.Value) > 1e-6*want.Value {
		t.Errorf("got %v bytes under the curve, want %v", got, want.Value)
	}
	if len(disk.Marks) != 1 || disk.Marks[0].Value != 1e9 {
		t.Errorf("got the marks %+v, want the ceiling of vda", disk.Marks)
	}
	ledger := titles["Where the time went: train"]
	if ledger == nil {
		t.Fatalf("got no ledger of the job among %d panels", len(c.Panels))
	}
	for i := range ledger.Lines[0].Values {
		sum := 0.0
		for _, l := range ledger.Lines {
			sum += l.Values[i]
		}
		if !math.IsNaN(sum) && math.Abs(sum-percent) > 1e-6 {
			t.Fatalf("interval %d: the ledger adds up to %v %%, want %v", i, sum, percent)
		}
	}
}

func TestLongTimeHasFewPoints(t *testing.T) {
	h := replayed(t).History()
	start, end := span(t, h)
	c := NewCurves(h, nil, start, end+time.Hour)
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			if len(l.Values) > maxPoints {
				t.Errorf("%s, %s: got %d points, want %d at most", p.Title, l.Name, len(l.Values), maxPoints)
			}
		}
	}
}

func TestNoTime(t *testing.T) {
	h := replayed(t).History()
	start, _ := span(t, h)
	if c := NewCurves(h, nil, start, start); len(c.Panels) != 0 {
		t.Errorf("got %d panels of no time, want none", len(c.Panels))
	}
}

func TestValuesAsJSON(t *testing.T) {
	text, err := json.Marshal(Values{0, 1.23456, math.NaN(), math.Inf(1), 123456})
	if err != nil {
		t.Fatal(err)
	}
	if want := "[0,1.235,null,null,1.235e+05]"; string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// hostile is a page with texts of a program that tries to become markup.
func hostile() *Data {
	return &Data{
		Title: `</title><script>alert(1)</script>`, Problems: []string{"</script><script>alert(2)</script>"},
		Windows: []Window{{Label: "<img src=x onerror=alert(3)>", Report: &explain.Report{Finding: "<!--<script>"}}},
	}
}

func TestTextsOfProgramsStayTexts(t *testing.T) {
	var text bytes.Buffer
	if err := Write(&text, hostile()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "<script"); n != 2 {
		t.Errorf("got %d script elements, want the data and the script", n)
	}
	for _, bad := range []string{"alert(1)</script>", "<script>alert", "<img"} {
		if strings.Contains(strings.Replace(text.String(), script, "", 1), bad) {
			t.Errorf("got %q in the page, want it escaped", bad)
		}
	}
}

func TestPageNeedsNoNetwork(t *testing.T) {
	var text bytes.Buffer
	if err := Write(&text, &Data{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 400<<10 {
		t.Errorf("got a page of %d bytes without data, want at most 400 KiB", text.Len())
	}
	for _, what := range []string{`src="http`, `href="http`, "url(http", "@import", "fetch(", "XMLHttpRequest"} {
		if strings.Contains(text.String(), what) {
			t.Errorf("got %q in the page, want nothing that asks a network", what)
		}
	}
	if !strings.Contains(text.String(), "default-src 'none'") {
		t.Error("got a page without a content security policy, want one")
	}
}

// A browser refuses a style or script that differs from the hash in the policy.
func TestPolicyNamesScriptAndStyle(t *testing.T) {
	var text bytes.Buffer
	if err := Write(&text, &Data{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	for name, pattern := range map[string]string{
		"script-src": `(?s)<script>(.*)</script>\n</body>`, "style-src": `(?s)<style>(.*?)</style>`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text.String())
		if found == nil {
			t.Fatalf("got no element for %s", name)
		}
		if want := name + " 'sha256-" + hash(found[1]) + "'"; !strings.Contains(html.UnescapeString(text.String()), want) {
			t.Errorf("got a policy without %s", want)
		}
	}
}
