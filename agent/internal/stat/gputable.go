package stat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// widestGPU is the maximum width of a GPU's index and name, for a table of 80 columns.
const widestGPU = 26

// detailColumns is the width of the columns that only some GPUs have, and plainColumns that of the others except the
// name.
const (
	plainColumns  = 54
	detailColumns = 40
)

// drawGPUs writes one row for each GPU. Values that only some GPUs have get columns if there is room, and otherwise
// lines of their own. width is as in draw.
func drawGPUs(to *bytes.Buffer, gpus []GPU, width int) {
	names := make([]string, len(gpus))
	longest := 0
	for i := range gpus {
		names[i] = output.Printable(fmt.Sprintf("%d %s%s", gpus[i].Index, gpus[i].Name, sliceOf(&gpus[i])))
		longest = max(longest, output.Columns(names[i]))
	}
	longest = min(longest, widestGPU)
	fmt.Fprintf(to, "%s%8s%10s%11s%7s%9s%9s\n", output.Fit("GPU", longest), "%util", "used MiB", "total MiB",
		"temp C", "power W",
		"PCIe")
	more := slices.ContainsFunc(gpus, func(g GPU) bool { return hasDetails(&g) })
	room := width == 0 || longest+plainColumns+detailColumns <= width
	if more && room {
		to.Truncate(to.Len() - 1)
		fmt.Fprintf(to, "%6s%9s%7s%18s\n", "%SM", "%tensor", "%DRAM", "throttled")
	}
	for i := range gpus {
		g := &gpus[i]
		if g.Status != "" {
			fmt.Fprintf(to, "%s  %s\n", output.Fit(names[i], longest), output.Printable(string(g.Status)))
			continue
		}
		drawGPU(to, g, output.Fit(names[i], longest))
		switch {
		case more && room:
			to.WriteString(whole(percentOf(g.SMActive), 6) + whole(percentOf(g.TensorActive), 9) +
				whole(percentOf(g.DRAMActive), 7) +
				fmt.Sprintf("%18s", throttled(g)))
		case hasDetails(g):
			to.WriteString("\n" + detailLine(g))
		}
		to.WriteByte('\n')
	}
}

// sliceOf distinguishes the MIG devices of one GPU, which share its index and often a name. It is the end of the UUID
// in
// `nvidia-smi -L`, and "" for a whole GPU.
func sliceOf(g *GPU) string {
	id, cut := strings.CutPrefix(g.ID, "MIG-")
	if !cut {
		return ""
	}
	return " " + id[max(0, len(id)-4):]
}

// hasDetails reports whether a GPU has values for the columns that only some GPUs have.
func hasDetails(g *GPU) bool {
	return g.SMActive != nil || g.TensorActive != nil || g.DRAMActive != nil || g.ThrottledBy != ""
}

// detailLine is the content of those columns in words.
func detailLine(g *GPU) string {
	var words []string
	for _, part := range []struct {
		name  string
		share *float64
	}{{"SM", g.SMActive}, {"tensor", g.TensorActive}, {"DRAM", g.DRAMActive}} {
		if part.share != nil {
			words = append(words, fmt.Sprintf("%s %.0f %%", part.name, 100**part.share))
		}
	}
	if g.ThrottledBy != "" {
		words = append(words, "throttled: "+throttled(g))
	}
	return "  " + strings.Join(words, ", ")
}

// throttled is the longest cause of throttling, with its share of the interval.
func throttled(g *GPU) string {
	if g.Throttled == nil || g.ThrottledBy == "" {
		return "-"
	}
	return fmt.Sprintf("%s %.0f %%", g.ThrottledBy, 100**g.Throttled)
}

func percentOf(share *float64) *float64 {
	if share == nil {
		return nil
	}
	return new(100 * *share)
}

// whole formats a number without decimals.
func whole(v *float64, width int) string {
	if v == nil {
		return number(nil, width)
	}
	return fmt.Sprintf("%*.0f", width, *v)
}

func drawGPU(to *bytes.Buffer, g *GPU, name string) {
	link := "-"
	if g.LinkWidth != nil && g.LinkGeneration != nil {
		link = fmt.Sprintf("gen%d x%d", *g.LinkGeneration, *g.LinkWidth)
	}
	to.WriteString(name + number(percentOf(g.Utilization), 8) + whole(inMiB(g.MemoryUsed), 10) +
		whole(inMiB(g.MemoryTotal), 11) +
		whole(g.Temperature, 7) + number(g.Power, 9) + fmt.Sprintf("%9s", link))
}

// inMiB converts bytes to nvidia-smi's unit of memory.
func inMiB(v *uint64) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v) / (1 << 20))
}
