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

// maxText bounds the file in bytes: 8192 cores, the limit of Linux, and a number for each interrupt.
const maxText = 4 << 20

// Source reads one sample.Core for each online core, without the sum line "cpu". It is not safe for concurrent use.
//
// The kernel counts ticks of USER_HZ, which is 100 Hz on all platforms of Linux and Go: times are exact to 10 ms.
type Source struct {
	path   string
	text   []byte // buffer
	parser parser
}

// New returns a source for root+"/proc/stat"; root is "" or "/" for this machine.
func New(root string) *Source { return &Source{path: filepath.Join("/", root, "proc/stat")} }

// Read appends the online cores in the order of the kernel. Cores may come and go between readings.
func (s *Source) Read(out *sample.Sample) (err error) {
	out.At = sample.Now()
	if s.text, err = kernfile.ReadWhole(s.path, s.text, maxText); err != nil {
		return fmt.Errorf("cannot read the times of CPU cores, check that %s is mounted and readable: %w", s.path, err)
	}
	cores, err := s.parser.parse(out.Cores, s.text)
	out.Cores = cores
	if err == nil && len(cores) == 0 {
		err = errors.New("it has no line of a core")
	}
	if err != nil {
		return fmt.Errorf("%s does not have the format of Linux, check what is mounted there: %w", s.path, err)
	}
	return nil
}

// tick is the unit of /proc/stat: 1/USER_HZ.
const tick = time.Second / 100

// maxCores bounds the stored names.
const maxCores = 8192

var prefix = []byte("cpu")

// parser parses core lines. It stores the names, so that they are allocated once.
type parser struct {
	names []string // "cpu0", "cpu1", ... by number
}

// parse appends one Core to cores for each line "cpuN", with which the text begins. The error names a line that cannot
// be parsed.
func (p *parser) parse(cores []sample.Core, text []byte) ([]sample.Core, error) {
	var bad []byte
	for bytes.HasPrefix(text, prefix) {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) > 3 && line[3] == ' ' {
			continue // sum of all cores
		}
		core, ok := p.core(line)
		if ok {
			cores = append(cores, core)
		} else if bad == nil {
			bad, _, _ = bytes.Cut(line[:min(len(line), 80)], []byte{' '}) // the times would make it another problem each time
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
