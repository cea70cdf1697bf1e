package explain

import (
	"fmt"
	"path"
	"regexp"

	"github.com/stallspan/stallspan/internal/window"
)

// muchRead is how much an epoch reads before its first batch if it fills a buffer.
const muchRead = 64 << 20

// firstBatch says what an epoch did before its work began.
func firstBatch(r *window.Report, f *window.FirstBatch) (text, remedy string) {
	took := f.Took.Seconds()
	text = fmt.Sprintf("The first batch took %s of %s", Duration(took), Duration(r.Duration().Seconds()))
	waited := f.Storage.Seconds() / took
	switch kind, most := r.MainReason(); {
	case f.Other > f.Took/2 && most > f.Took/2:
		return text + ", and most of that was waiting " + waitedFor[kind] + ".", whereToLook[kind]
	case f.Other > f.Took/2:
		return text + ", and most of that was other waiting.", newSituation(r).askStack()
	case f.Workers > 0:
		processes := "a process"
		if f.Workers > 1 {
			processes = fmt.Sprintf("%d processes", f.Workers)
		}
		return text + ": " + processes + " started again in that time.",
			"Keep the workers from one epoch to the next" + inPython(r, "persistent_workers=True of PyTorch's DataLoader") + "."
	case waited >= window.Thresholds.Stall || f.Read >= muchRead:
		if f.Read > 0 {
			text += fmt.Sprintf("; it read %s in that time", Size(f.Read))
		}
		return text + fmt.Sprintf(", and waited for storage %s of it.", percent(waited)),
			"Read the first batches before the epoch begins, or shuffle in a smaller buffer" + inPython(r,
				"num_workers, prefetch_factor and persistent_workers of PyTorch's DataLoader; prefetch, and buffer_size of "+
					"shuffle, of tf.data") + "."
	}
	return text + ", and hardly any of that was waiting for storage.",
		"Do once what comes before the first batch, such as a listing of the files or the start of workers" + inPython(r,
			"persistent_workers=True of PyTorch's DataLoader") + "."
}

// inPython is words of a framework behind a remedy, in brackets; "" if the program is not known to be in Python.
func inPython(r *window.Report, words string) string {
	if python.MatchString(path.Base(r.Run)) || python.MatchString(path.Base(r.Who.Name)) {
		return " (" + words + ")"
	}
	return ""
}

// python is the name of a script, of the interpreter, or of a program that starts scripts.
var python = regexp.MustCompile(`\.py\b|^(i?python|jupyter|torchrun|accelerate|deepspeed)\b|^python`)
