package cpu

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

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
