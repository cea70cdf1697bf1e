package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
)

// PartName is the name of a part for people.
func PartName(part string) string {
	switch part {
	case Busy:
		return "GPU busy"
	case OnCPU:
		return "on CPU"
	case Storage:
		return "storage stall"
	case CPU:
		return "CPU stall"
	case Ready:
		return "no core"
	}
	return part
}

// More formats a difference in seconds: "3.2 s less". It is empty if that rounds to zero.
func More(difference float64) string {
	switch {
	case math.Abs(difference) < 0.5e-6:
		return ""
	case difference < 0:
		return explain.Duration(-difference) + " less"
	default:
		return explain.Duration(difference) + " more"
	}
}

// why lists the reasons: "storage stall 3.2 s less, CPU stall 400 ms more".
func why(ledger string, because []Part) string {
	var list []string
	for _, p := range because {
		name := PartName(p.Part)
		switch {
		case p.Part == Busy:
			name = "GPU work"
		case p.Part == OnCPU:
			name = "time on the CPU"
		case p.Part == Ready:
			name = "time without a core"
		case p.Part == Other && ledger == GPULedger:
			name = "unexplained GPU idle time"
		case p.Part == Other:
			name = "unexplained waiting"
		}
		list = append(list, name+" "+More(p.Difference))
	}
	return strings.Join(list, ", ")
}

// Verdict is the difference of the durations: "1.72x faster".
func (p *Pair) Verdict() string {
	switch p.Change {
	case Same:
		return "about the same"
	case Unknown:
		return "cut short"
	}
	shorter, longer := min(p.A.Duration, p.B.Duration), max(p.A.Duration, p.B.Duration)
	return times(longer, shorter) + " " + string(p.Change)
}

// times formats the ratio of two durations in at most seven characters.
func times(longer, shorter float64) string {
	switch {
	case longer >= 1000*shorter:
		return "1000x+"
	case longer >= 10*shorter:
		return fmt.Sprintf("%.0fx", longer/shorter)
	}
	return fmt.Sprintf("%.2fx", longer/shorter)
}

// sentence is the finding of a pair.
func (p *Pair) sentence() string {
	label := p.Label
	if p.LabelB != "" {
		label += " in A, " + p.LabelB + " in B"
	}
	s := fmt.Sprintf("%s: %s -> %s, %s",
		label, explain.Duration(p.A.Duration), explain.Duration(p.B.Duration), p.Verdict())
	switch {
	case p.Why == "":
		return s + "."
	case p.Change == Same:
		return s + ", but spent differently: " + p.Why + "."
	}
	return s + ": " + p.Why + "."
}

// note adds remarks on the numbers.
func (p *Pair) note(a, b *explain.Report) {
	add := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if p.LabelB != "" {
		add("In B its name is %s.", p.LabelB)
	}
	if cut := sides(a.Unfinished, b.Unfinished); cut != "" {
		add("It was cut short in %s, so its duration cannot be compared.", cut)
		return
	}
	p.noteBound(add)
	p.noteLedgers(ledgerOf(a), ledgerOf(b), add)
	if p.Parts != nil && p.Ledger == GPULedger && p.A.GPUs != p.B.GPUs {
		add("A ran on %s, B on %s: the parts are the mean of one.", output.Count(p.A.GPUs, "GPU"),
			output.Count(p.B.GPUs, "GPU"))
	}
	if broken := sides(a.Interrupted, b.Interrupted); broken != "" && p.Parts != nil {
		add("In %s a counter was reset or a device was removed, so the parts are incomplete.", broken)
	}
}

// noteLedgers adds why the parts are not compared.
func (p *Pair) noteLedgers(a, b *ledger, add func(string, ...any)) {
	switch missing := sides(a == nil, b == nil); {
	case missing != "":
		add("There is no ledger in %s.", missing)
	case a.kind != b.kind:
		with, without := "A", "B"
		if b.kind == GPULedger {
			with, without = "B", "A"
		}
		add("%s has the ledger of a GPU, and %s, without a GPU, that of the program: their parts cannot be compared.", with,
			without)
	}
}

// noteBound compares the predicted speed-up of the slower report with the measured speed-up.
func (p *Pair) noteBound(add func(string, ...any)) {
	slower, other, name, otherName := &p.A, &p.B, "A", "B"
	if p.Change == Slower {
		slower, other, name, otherName = &p.B, &p.A, "B", "A"
	}
	if p.ExplainedBy != Storage || slower.SpeedupBound == nil || *slower.SpeedupBound < 1+Noise {
		return
	}
	likely := *slower.SpeedupBound
	low, high := slower.SpeedupLow, slower.SpeedupHigh
	known := low > 0 // false for a report without a range
	if !known {
		low, high = likely, likely
	}
	end := "."
	switch measured := slower.Duration / max(other.Duration, 1e-9); {
	case p.left(Storage, other) > without:
		end = fmt.Sprintf(", and still waited for storage %.0f %% of its time.", 100*p.left(Storage, other))
	case known && high > 0 && measured > high*(1+Noise):
		end = ": more than storage differs."
	case measured > low/(1+Noise) && (known || measured < high*(1+Noise)):
		end = ", as predicted."
	}
	add("%s predicted %s without waiting for storage; %s is %s faster%s", name,
		explain.Faster(likely, slower.SpeedupLow, slower.SpeedupHigh), otherName, times(slower.Duration, other.Duration), end)
}

// without is the largest share of waiting for storage in a window that counts as one without.
const without = 0.05

// left returns the share of a part in one of the two windows; 0 if it is unknown.
func (p *Pair) left(part string, of *Side) float64 {
	for _, one := range p.Parts {
		if one.Part == part {
			seconds := one.A
			if of == &p.B {
				seconds = one.B
			}
			return seconds / max(of.Duration, 1e-9)
		}
	}
	return 0
}

// sides names the reports for which a condition holds.
func sides(a, b bool) string {
	switch {
	case a && b:
		return "both"
	case a:
		return "A"
	case b:
		return "B"
	}
	return ""
}

func totalLabel(n int) string {
	if n == 1 {
		return "This window"
	}
	return fmt.Sprintf("The %d windows together", n)
}

// finding counts the windows that changed, and adds the finding of the whole.
func (c *Comparison) finding() string {
	count := map[Change]int{}
	for _, p := range c.Windows {
		count[p.Change]++
	}
	switch {
	case len(c.Windows) == 0:
		return "No window of A is also in B: nothing can be compared."
	case c.Whole == nil:
		return "Every window was cut short in A or in B: nothing can be compared."
	case len(c.Windows) == 1 && c.Whole.Label == totalLabel(1):
		return c.Windows[0].Finding
	}
	var list []string
	for _, change := range []struct {
		kind  Change
		words string
	}{{Slower, "slower"}, {Faster, "faster"}, {Same, "about the same"}, {Unknown, "cut short"}} {
		if n := count[change.kind]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, change.words))
		}
	}
	return "Windows of B against A: " + strings.Join(list, ", ") + ". " + c.Whole.Finding
}
