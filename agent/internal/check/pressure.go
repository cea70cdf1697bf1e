package check

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/pressure"
)

// pressure reads the pressure of the whole machine.
func (m *machine) pressure(ctx context.Context) []Finding {
	source := pressure.New(m.Root)
	var s sample.Sample
	err := source.Read(&s)
	var counted, missing []string
	for _, resource := range []sample.Resource{sample.IO, sample.Memory, sample.CPU} {
		if slices.ContainsFunc(s.Pressures, func(p sample.Pressure) bool {
			return p.Scope == sample.HostScope && p.Resource == resource
		}) {
			counted = append(counted, string(resource))
		} else {
			missing = append(missing, string(resource))
		}
	}
	f := Finding{Area: Pressure, What: "pressure", Details: map[string]any{"resources": nonNil(counted)}}
	switch {
	case len(counted) > 0 && m.isHost() && !m.olderThan(5, 7) && standsStill(ctx, source, s.Pressures):
		return f.as(Missing, m.countersFix(), "The counts of waiting (PSI) in %s stand still, while threads wait for a CPU "+
			"all the time: another program may write these files. Storage stall is estimated from the busiest disk's queue, "+
			"which is less certain.", m.path("proc/pressure"))
	case len(missing) == 0:
		return f.as(Seen, "", "The kernel counts how long programs wait for storage, memory and the CPU (PSI).")
	case len(counted) > 0:
		return f.as(Limited, "", "The kernel counts waiting (PSI) for %s, but not for %s: %v.", list(counted), list(missing),
			err)
	}
	return f.as(Missing, m.pressureFix(), "The kernel does not count how long programs wait (PSI): storage stall is "+
		"estimated from the busiest disk's queue, which is less certain.")
}

// standsStill reports whether nothing of a pressure grows for two seconds, or until ctx ends. A thread that wakes waits
// for its CPU, if only for microseconds.
func standsStill(ctx context.Context, source *pressure.Source, before []sample.Pressure) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 40 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		now := sample.Sample{Edge: true}
		if err := source.Read(&now); err != nil || !slices.Equal(now.Pressures, before) {
			return false
		}
	}
	return true
}

// pressureFix finds out why there is no pressure.
func (m *machine) pressureFix() string {
	_, err := readFile(m.path("proc/pressure/io"))
	switch {
	case m.procFix() != "":
		return m.procFix()
	case errors.Is(err, fs.ErrPermission):
		return "run stallspan as a user that may read " + m.path("proc/pressure")
	case errors.Is(err, syscall.EOPNOTSUPP): // the kernel has it, switched off
		return pressureOn
	case m.olderThan(4, 20):
		return "boot Linux 4.20 or later with psi=1 on the kernel's command line"
	case m.configured("CONFIG_PSI") == "":
		return "boot a kernel that was built with CONFIG_PSI=y"
	}
	return pressureOn
}

const pressureOn = "add psi=1 to the kernel's command line, and restart the machine"

// release is the kernel's version with a blank before it, or "".
func (m *machine) release() string {
	text, err := readFile(m.path("proc/sys/kernel/osrelease"))
	if err != nil {
		return ""
	}
	return " " + strings.TrimSpace(text)
}

// olderThan reports whether the machine's kernel is older than a version; false if that is not known.
func (m *machine) olderThan(major, minor int) bool {
	var x, y int
	_, err := fmt.Sscanf(strings.TrimSpace(m.release()), "%d.%d", &x, &y)
	return err == nil && (x < major || x == major && y < minor)
}

// configured is a setting of the kernel's build: "y", "m", "" if it was left out, "?" if it is unknown.
func (m *machine) configured(setting string) string {
	for _, name := range []string{"proc/config.gz", "boot/config-" + strings.TrimSpace(m.release())} {
		file, err := os.Open(m.path(name))
		if err != nil {
			continue
		}
		defer file.Close()
		var text io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			if text, err = gzip.NewReader(file); err != nil {
				continue
			}
		}
		lines, value := bufio.NewScanner(io.LimitReader(text, 4<<20)), ""
		for lines.Scan() {
			if v, ok := strings.CutPrefix(lines.Text(), setting+"="); ok {
				value = v
			}
		}
		if lines.Err() == nil {
			return value
		}
	}
	return "?"
}

// readFile reads a file, but not all of a large one.
func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, agentconfig.MaxSize))
	return string(text), err
}
