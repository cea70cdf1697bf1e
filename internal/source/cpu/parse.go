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

// tick is the unit of /proc/stat.
const tick = time.Second / 100

// mostCores bounds the names that are remembered.
const mostCores = 8192

var prefix = []byte("cpu")

// coreLines is the part of text that is made of lines that begin with "cpu"; complete says that another line
// begins after them. Without that the last line may still be cut off.
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

// parser makes cores from lines. It remembers their names, so that they are made only once.
type parser struct {
	names []string // "cpu0", "cpu1", ... at their number
}

// parse appends one Core to cores for each line "cpuN". A line that makes no sense is left out and told.
func (p *parser) parse(cores []sample.Core, lines []byte) ([]sample.Core, error) {
	var bad []byte
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte{'\n'})
		if len(line) > 3 && line[3] == ' ' {
			continue // the sum of all cores
		}
		core, ok := p.core(line)
		if ok {
			cores = append(cores, core)
		} else if bad == nil {
			bad = line[:min(len(line), 80)]
		}
	}
	if bad != nil {
		return cores, fmt.Errorf("%q is no core's line", bad)
	}
	return cores, nil
}

// core reads "cpuN user nice system idle iowait irq softirq steal guest guest_nice". Only the first four are in
// every kernel. The last two are left alone, because the kernel has added them to user and nice already.
func (p *parser) core(line []byte) (core sample.Core, ok bool) {
	digits, rest, _ := bytes.Cut(line[min(len(line), len(prefix)):], []byte{' '})
	number, ok := kernfile.ParseUint(digits)
	if !ok || number >= mostCores {
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
