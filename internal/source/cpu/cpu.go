// Package cpu reads the times of each core from /proc/stat (Documentation/filesystems/proc.rst, section 1.8).
package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	firstBuffer = 4 << 10 // bytes: about fifty cores
	maxBuffer   = 2 << 20 // bytes: 8192 cores, the limit of Linux
)

// Source reads one sample.Core for each online core, without the sum line "cpu". It keeps the file open and is not safe
// for concurrent use.
//
// The kernel counts ticks of USER_HZ, which is 100 Hz on all platforms of Linux and Go: times are exact to 10 ms.
type Source struct {
	file   kernfile.Kept
	buf    []byte
	parser parser
}

// New returns a source for root+"/proc/stat"; root is "" or "/" for this machine. Read opens the file.
func New(root string) *Source {
	path := filepath.Join("/", root, "proc/stat")
	return &Source{file: kernfile.Kept{Path: path}, buf: make([]byte, firstBuffer)}
}

// Read appends the online cores in the order of the kernel. Cores may come and go between readings.
func (s *Source) Read(out *sample.Sample) error {
	var lines []byte
	err := s.file.Read(func(file *kernfile.File) (err error) {
		out.At = sample.Now()
		lines, err = s.lines(file)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read the times of CPU cores, check that %s is mounted and readable: %w", s.file.Path, err)
	}
	cores, err := s.parser.parse(out.Cores, lines)
	out.Cores = cores
	if err == nil && len(cores) == 0 {
		err = errors.New("it has no line of a core")
	}
	if err != nil {
		return fmt.Errorf("%s does not have the format of Linux, check what is mounted there: %w", s.file.Path, err)
	}
	return nil
}

// Close closes the file. Read opens it again.
func (s *Source) Close() { s.file.Close() }

// lines returns the start of the file with all core lines. The rest is longer, with a number for each interrupt, so the
// buffer grows only while it ends in a core line. The kernel generates the text at the read at offset 0, so that later
// reads belong to the same time.
func (s *Source) lines(file *kernfile.File) ([]byte, error) {
	n := 0
	for {
		m, err := file.ReadAt(s.buf[n:], int64(n))
		n += m
		if err != nil {
			return nil, err
		}
		lines, complete := coreLines(s.buf[:n])
		if complete || n < len(s.buf) {
			return lines, nil
		}
		if len(s.buf) >= maxBuffer {
			return nil, fmt.Errorf("its core lines are longer than %d bytes", maxBuffer)
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
}

// tick is the unit of /proc/stat: 1/USER_HZ.
const tick = time.Second / 100

// maxCores bounds the stored names.
const maxCores = 8192

var prefix = []byte("cpu")

// coreLines returns the leading lines of text with the prefix "cpu". complete reports whether another line follows.
// Without it the last line may be truncated.
func coreLines(text []byte) (lines []byte, complete bool) {
	for at := 0; at < len(text); {
		rest := text[at:]
		if !bytes.HasPrefix(rest, prefix) {
			return text[:at], !bytes.HasPrefix(prefix, rest)
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return text, false
}

// parser parses core lines. It stores the names, so that they are allocated once.
type parser struct {
	names []string // "cpu0", "cpu1", ... by number
}

// parse appends one Core to cores for each line "cpuN". The error names a line that cannot be parsed.
func (p *parser) parse(cores []sample.Core, lines []byte) ([]sample.Core, error) {
	var bad []byte
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte{'\n'})
		if len(line) > 3 && line[3] == ' ' {
			continue // sum of all cores
		}
		core, ok := p.core(line)
		if ok {
			cores = append(cores, core)
		} else if bad == nil {
			bad = line[:min(len(line), 80)]
		}
	}
	if bad != nil {
		return cores, fmt.Errorf("%q is not the line of a core", bad)
	}
	return cores, nil
}

// core parses "cpuN user nice system idle iowait irq softirq steal guest guest_nice". All kernels have the first four.
// The kernel includes guest and guest_nice in user and nice.
func (p *parser) core(line []byte) (core sample.Core, ok bool) {
	digits, rest, _ := bytes.Cut(line[min(len(line), len(prefix)):], []byte{' '})
	number, ok := kernfile.ParseUint(digits)
	if !ok || number >= maxCores {
		return core, false
	}
	into := [...]*time.Duration{
		&core.User, &core.Nice, &core.System, &core.Idle, &core.IOWait, &core.IRQ, &core.SoftIRQ, &core.Steal,
	}
	fields := 0
	for len(rest) > 0 && fields < len(into) {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte{' '})
		if len(field) == 0 {
			continue
		}
		ticks, ok := kernfile.ParseUint(field)
		if !ok || ticks > math.MaxInt64/uint64(tick) {
			return core, false
		}
		*into[fields] = time.Duration(ticks) * tick
		fields++
	}
	core.Name = p.name(int(number))
	return core, fields >= 4
}

func (p *parser) name(number int) string {
	for n := len(p.names); n <= number; n++ {
		p.names = append(p.names, "cpu"+strconv.Itoa(n))
	}
	return p.names[number]
}
