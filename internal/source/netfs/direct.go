package netfs

import (
	"bytes"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// readDirect reads the counters of GPUDirect Storage. Without its driver it looks again once a minute.
func (s *Source) readDirect(out *sample.Sample, now time.Duration) {
	if s.direct > now {
		return
	}
	text, err := kernfile.ReadOnce(s.path("proc/driver/nvidia-fs/stats"), s.small)
	if err != nil {
		s.direct = now + tryAgain
		return
	}
	if d, ok := parseDirect(text); ok {
		out.GPUDirect = &d
	}
}

// parseDirect parses the lines "Reads : n=1 ok=1 err=0 readMiB=4 ..." and "Writes : ..." of
// /proc/driver/nvidia-fs/stats. Without rw_stats_enabled they have errors alone.
func parseDirect(text []byte) (d sample.GPUDirect, known bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		name, rest, _ := bytes.Cut(line, []byte{':'})
		of, size := &d.Read, "readMiB"
		switch string(bytes.TrimSpace(name)) {
		case "Reads":
		case "Writes":
			of, size = &d.Write, "writeMiB"
		default:
			continue
		}
		for word := range bytes.FieldsSeq(rest) {
			key, value, _ := bytes.Cut(word, []byte{'='})
			n, ok := kernfile.ParseUint(value)
			if !ok {
				continue
			}
			switch string(key) {
			case "ok":
				of.Operations, d.HasTransfer = n, true
			case "err":
				of.Errors, known = n, true
			case size:
				of.Bytes, d.HasTransfer = times(n, 1<<20), true
			}
		}
	}
	return d, known
}
