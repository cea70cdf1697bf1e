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

// gpuColumn is a column of the GPU table.
type gpuColumn struct {
	name  string
	width int
	text  func(g *GPU, width int) string
}

var gpuColumns = []gpuColumn{
	{"%util", 8, func(g *GPU, width int) string { return number(scaled(g.Utilization, 100), width) }},
	{"used MiB", 10, func(g *GPU, width int) string { return whole(scaled(g.MemoryUsed, mebi), width) }},
	{"total MiB", 11, func(g *GPU, width int) string { return whole(scaled(g.MemoryTotal, mebi), width) }},
	{"temp C", 7, func(g *GPU, width int) string { return whole(g.Temperature, width) }},
	{"power W", 9, func(g *GPU, width int) string { return number(g.Power, width) }},
	{"PCIe", 9, func(g *GPU, width int) string {
		if g.LinkWidth == nil || g.LinkGeneration == nil {
			return number(nil, width)
		}
		return fmt.Sprintf("%*s", width, fmt.Sprintf("gen%d x%d", *g.LinkGeneration, *g.LinkWidth))
	}},
}

// detailColumns are those that only some GPUs have.
var detailColumns = []gpuColumn{
	{"%SM", 6, func(g *GPU, width int) string { return whole(scaled(g.SMActive, 100), width) }},
	{"%tensor", 9, func(g *GPU, width int) string { return whole(scaled(g.TensorActive, 100), width) }},
	{"%DRAM", 7, func(g *GPU, width int) string { return whole(scaled(g.DRAMActive, 100), width) }},
	{"throttled", 18, func(g *GPU, width int) string { return fmt.Sprintf("%*s", width, throttled(g)) }},
}

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
	columns, used := slices.Concat(gpuColumns, detailColumns), longest
	for _, c := range columns {
		used += c.width
	}
	more := slices.ContainsFunc(gpus, func(g GPU) bool { return hasDetails(&g) })
	room := width == 0 || used <= width
	if !more || !room {
		columns = gpuColumns
	}
	to.WriteString(output.Fit("GPU", longest))
	for _, c := range columns {
		fmt.Fprintf(to, "%*s", c.width, c.name)
	}
	for i := range gpus {
		g := &gpus[i]
		to.WriteString("\n" + output.Fit(names[i], longest))
		if g.Status != "" {
			to.WriteString("  " + output.Printable(string(g.Status)))
			continue
		}
		for _, c := range columns {
			to.WriteString(c.text(g, c.width))
		}
		if !room && hasDetails(g) {
			to.WriteString("\n" + detailLine(g))
		}
	}
	to.WriteByte('\n')
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

// whole formats a number without decimals.
func whole(v *float64, width int) string {
	if v == nil {
		return number(nil, width)
	}
	return fmt.Sprintf("%*.0f", width, *v)
}

// scaled converts a value to another unit. A missing one stays missing.
func scaled[T float64 | uint64](v *T, by float64) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v) * by)
}
