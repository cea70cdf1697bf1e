package agent

import (
	"bytes"
	"fmt"

	"github.com/stallspan/stallspan/internal/rate"
)

// widestGPU is how many columns a GPU's index and name have at most: with them the table is 80 wide.
const widestGPU = 26

func drawGPUs(to *bytes.Buffer, gpus []rate.GPU) {
	names := make([]string, len(gpus))
	longest := 0
	for i := range gpus {
		names[i] = printable(fmt.Sprintf("%d %s", gpus[i].Index, gpus[i].Name))
		longest = max(longest, columns(names[i]))
	}
	longest = min(longest, widestGPU)
	fmt.Fprintf(to, "%s%8s%10s%11s%7s%9s%9s\n", fit("GPU", longest), "%util", "used MiB", "total MiB", "temp C", "power W", "PCIe")
	for i := range gpus {
		drawGPU(to, &gpus[i], fit(names[i], longest))
	}
}

func drawGPU(to *bytes.Buffer, g *rate.GPU, name string) {
	if g.Status != "" {
		fmt.Fprintf(to, "%s  %s\n", name, printable(string(g.Status)))
		return
	}
	var busy *float64
	if g.Utilization != nil {
		busy = new(100 * *g.Utilization)
	}
	whole := func(v *float64, width int) string {
		if v == nil {
			return number(nil, width)
		}
		return fmt.Sprintf("%*.0f", width, *v)
	}
	link := "-"
	if g.LinkWidth != nil && g.LinkGeneration != nil {
		link = fmt.Sprintf("gen%d x%d", *g.LinkGeneration, *g.LinkWidth)
	}
	to.WriteString(name + number(busy, 8) + whole(inMiB(g.MemoryUsed), 10) + whole(inMiB(g.MemoryTotal), 11) +
		whole(g.Temperature, 7) + number(g.Power, 9) + fmt.Sprintf("%9s", link) + "\n")
}

// inMiB is what nvidia-smi counts memory in.
func inMiB(v *uint64) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v) / (1 << 20))
}
