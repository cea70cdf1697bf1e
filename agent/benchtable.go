package agent

import (
	"bytes"
	"fmt"
	"io"

	"github.com/stallspan/stallspan/internal/window"
)

// printBench writes what was measured as a table of 80 columns.
func printBench(out io.Writer, r *benchReport) error {
	var text bytes.Buffer
	t := &table{out: &text}
	what := r.Path + ": " + sizeText(int64(r.Size))
	if r.Device != "" {
		what += ", disk " + r.Device
	}
	t.text("", what)
	way := "O_DIRECT"
	if !r.Direct {
		way = "buffered"
	}
	if r.Cached > 0 {
		t.line(fmt.Sprintf(" Timing cached reads:         %14s   from memory, no disk", speedText(r.Cached)))
	}
	if r.Sequential > 0 {
		t.line(fmt.Sprintf(" Timing %s disk reads:  %14s   1 MiB each, 4 at once", way, speedText(r.Sequential)))
	}
	if len(r.Random) > 0 {
		t.line("")
		t.line(" Random reads of 4 KiB")
		t.line(fmt.Sprintf(" %8s %12s %14s %12s %12s", "at once", "IOPS", "throughput", "await p50", "await p99"))
	}
	for _, at := range r.Random {
		t.line(fmt.Sprintf(" %8d %12s %14s %12s %12s", at.Depth, grouped(at.IOPS), speedText(at.Rate),
			window.Short(at.AwaitP50), window.Short(at.AwaitP99)))
	}
	t.line("")
	for _, note := range r.Notes {
		t.text("Note: ", note)
	}
	switch {
	case r.KeptIn != "":
		t.text("", fmt.Sprintf("Kept in %s: %s can read %s, and a read alone takes %s.", r.KeptIn, r.Device, speedText(r.Ceiling), window.Short(r.Await())))
	case !r.OfDisk && len(r.Random) > 0:
		t.text("", "Not kept: these numbers are not surely those of one disk.")
	default:
		t.text("", "Not kept.")
	}
	_, err := out.Write(text.Bytes())
	return err
}

func speedText(bytesPerSecond float64) string { return sizeText(int64(bytesPerSecond)) + "/s" }
