package rhythm

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	maxFDs = 2048 // open files of a job that are remembered
	// rewound is the share of the highest position to which a file must go back.
	rewound = 0.3
)

// descriptor is an open file at the last look.
type descriptor struct {
	pid, fd int
	key     detect.FileKey
	offset  int64
	highest int64
	rises   int // looks in which the position rose, since it was lowest
}

// opened is an open of a data file, or a read that begins at the start again.
type opened struct {
	at, open time.Duration
	pid      int
	key      detect.FileKey
	modified modified
	size     int64
	path     string
	rewind   bool
	fell     bool // of a map that was made again
	was      bool // another process had it open under the same number: it was inherited
}

// scan compares the open files with those of the last look.
func (p *passes) scan(f *look, first bool) (list []opened) {
	now := make([]descriptor, 0, min(len(f.Files), maxFDs))
	for i := range f.Files {
		file := &f.Files[i]
		if len(now) == maxFDs {
			break
		}
		if file.FD < 0 || file.Write || file.Size == 0 || !isData(file.Path) {
			continue
		}
		d := descriptor{pid: file.PID, fd: file.FD, key: file.Key, offset: file.Offset, highest: file.Offset}
		o := opened{pid: file.PID, key: file.Key, modified: modified(file.Modified), size: file.Size, path: file.Path}
		if k, known := p.find(file.PID, file.FD); known && p.fds[k].key == file.Key {
			old := &p.fds[k]
			d.highest, d.rises = max(old.highest, d.offset), old.rises
			switch {
			case d.offset > old.offset:
				d.rises++
			case d.offset < old.offset && old.rises >= 2 && float64(d.offset) < rewound*float64(old.highest) &&
				float64(old.offset) > (1-rewound)*float64(old.highest):
				o.at, o.open = began(f, file)
				o.rewind = true
				list = append(list, o)
				d.highest, d.rises = d.offset, 0
			case d.offset < old.offset:
				d.rises = 0
			case d.offset == old.offset && !first:
				if bytes := f.maps.fellOf(file.PID); bytes > 0 && bytes <= file.Size { // it was mapped again
					o.at, o.open = f.Last+(f.At-f.Last)/2, f.At-f.Last
					o.rewind, o.fell = true, true
					list = append(list, o)
				}
			}
		} else if !first {
			o.at, o.open = began(f, file)
			o.was = slices.ContainsFunc(p.fds, func(x descriptor) bool { return x.fd == d.fd && x.key == d.key })
			list = append(list, o)
		}
		now = append(now, d)
	}
	slices.SortFunc(now, func(a, b descriptor) int { return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.fd, b.fd)) })
	p.fds = now
	return list
}

func (p *passes) find(pid, fd int) (int, bool) {
	return slices.BinarySearchFunc(p.fds, descriptor{pid: pid, fd: fd}, func(a, b descriptor) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.fd, b.fd))
	})
}

// began returns when a file was opened that is read up to a position now. It was since the last look and the start of
// its process, and not later than when the job had still to read so many bytes.
func began(f *look, file *detect.File) (at, open time.Duration) {
	low, high, offset := f.Last, f.At, file.Offset
	for i := range f.Processes {
		if p := &f.Processes[i]; p.PID == file.PID && p.Started < high {
			low = max(low, p.Started)
		}
	}
	chars, ok := f.Past.Level(detect.ReadChars, f.At)
	if offset > 0 && ok {
		from, to := low, high
		for to-from > 20*time.Millisecond {
			middle := from + (to-from)/2
			if v, ok := f.Past.Level(detect.ReadChars, middle); ok && v > chars-float64(offset) {
				to = middle
			} else {
				from = middle
			}
		}
		high = to
	}
	return high, f.At - f.Last
}

// isData reports whether a path may be of data: not a library, a module of Python, or a file of the system.
func isData(name string) bool {
	switch path.Ext(name) {
	case ".safetensors", ".gguf", ".ggml", ".distcp", ".engine", ".plan", ".onnx", ".onnx_data", ".keras", ".tflite",
		".nemo", ".ckpt": // weights
		return false
	case ".py", ".pyc", ".so", ".pth", ".pyi", ".ld", ".cache", ".conf", ".mo":
		return false
	}
	for _, prefix := range []string{"/proc/", "/sys/", "/dev/", "/etc/", "/usr/"} {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "/dev/shm/") {
			return false
		}
	}
	return name != "" && !strings.Contains(name, ".so.")
}

// modified is when the content of a file changed last; 0 if that is not known, as with opens that the kernel reports.
type modified int64

// differs reports whether a file was written again: then it is another one, as in a ring of files.
func (m modified) differs(other modified) bool { return m != 0 && other != 0 && m != other }

func hash(k detect.FileKey) uint64 {
	h := (k.Inode ^ k.Device<<32) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}
