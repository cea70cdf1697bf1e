// Package pressure reads pressure stall information (Documentation/accounting/psi.rst): how long tasks waited for CPU,
// memory and I/O, on the machine and in selected cgroups.
package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxScopes bounds the cgroups besides the host: one for each job. Each takes three files and about 2 us per tick.
const maxScopes = 80

// The order of reading: I/O first, because the stamp is taken just before.
var resources = [...]sample.Resource{sample.IO, sample.Memory, sample.CPU}

var errNoPSI = errors.New("no pressure stall information: boot with psi=1 (the kernel needs CONFIG_PSI)")

// Source reads one sample.Pressure for each resource of the host and of each added cgroup. Totals are exact to the
// microsecond at the time of the read. It is safe for concurrent use.
type Source struct {
	root string

	mu      sync.Mutex
	host    scope
	lacking bool // the kernel has no PSI, and that was reported
	scopes  []*scope
	buf     [512]byte // a file has two lines of at most 80 bytes

	began time.Duration                 // Stamp.Mono of the first reading
	first [len(resources)]time.Duration // Some of the host in that
	moved bool                          // one of these has grown since
	still bool                          // that none does was reported

	whole time.Duration                   // Stamp.Mono of the last complete reading
	last  [len(resources)]sample.Pressure // of the host; without a Resource if the last read failed
}

// completeInterval is the time between complete readings: once a second, with ticks that are a little early. Other
// readings have I/O, and the CPU of cgroups, because ledgers need them. They repeat the host's memory and CPU, which no
// verdict uses.
const completeInterval = 950 * time.Millisecond

// stillAfter is how long the pressure of the host may stand still from the first reading on. A thread that wakes waits
// for its CPU for microseconds, and those of this program wake at each reading, so that a kernel that counts counts
// that (from Linux 5.7 on; an older one counts nothing as long as no thread waits for another).
const stillAfter = 10 * time.Second

// scope is a cgroup or the host, with one file for each resource.
type scope struct {
	name  string               // sample.HostScope, or the path of a cgroup
	users int                  // calls of Add without Remove
	gone  [len(resources)]bool // it is gone, and a pressure that was disabled was reported
	files [len(resources)]string
}

// New returns a source for root+"/proc/pressure" and the cgroup v2 tree below root; root is "" or "/" for this machine.
func New(root string) *Source {
	s := &Source{root: filepath.Join("/", root)}
	for i, resource := range resources {
		s.host.files[i] = filepath.Join(s.root, "proc/pressure", string(resource))
	}
	return s
}

// Add adds a cgroup, by its path as in /proc/PID/cgroup (see cgroup.ScopeOf). Each Add needs a Remove: a scope that was
// added twice is read once and leaves at the second Remove. After an error nothing was added: the cgroup does not
// exist, has no pressure, or 64 others are read already.
func (s *Source) Add(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.scopes {
		if known.name == name {
			known.users++
			return nil
		}
	}
	if len(s.scopes) == maxScopes {
		return fmt.Errorf("cannot read the pressure of cgroup %s: %d others are read already, end one of those first",
			name, maxScopes)
	}
	dir, err := cgroup.Dir(s.root, name)
	if err != nil {
		return err
	}
	added := &scope{name: name, users: 1}
	readable := 0
	for i, resource := range resources {
		added.files[i] = filepath.Join(dir, string(resource)+".pressure")
		if _, _, readErr := read(added.files[i], s.buf[:]); readErr == nil {
			readable++
		} else if err == nil {
			err = readErr
		}
	}
	if readable == 0 {
		if hidden(err) {
			return fmt.Errorf(
				"cgroup %s has no pressure: check that it exists, boot with psi=1, write 1 to its cgroup.pressure: %w",
				name,
				err,
			)
		}
		return fmt.Errorf("cannot read the pressure of cgroup %s: %w", name, err)
	}
	s.scopes = append(s.scopes, added)
	return nil
}

// Remove reverses one Add. It ignores an unknown scope.
func (s *Source) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.scopes {
		if known.name != name {
			continue
		}
		if known.users--; known.users == 0 {
			s.scopes = append(s.scopes[:i], s.scopes[i+1:]...)
		}
		return
	}
}

// Read appends the pressures of I/O, then of memory, then of the CPU, each for the host and then for the cgroups in the
// order of Add. Most ticks read only what ledgers need (see completeInterval). The error names what cannot be read.
func (s *Source) Read(out *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems sample.Problems
	out.At = sample.Now()
	all := out.Edge || s.whole == 0 || out.At.Mono-s.whole >= completeInterval
	if all {
		s.whole = out.At.Mono
	}
	for i, resource := range resources {
		switch {
		case !all && resource != sample.IO && s.last[i].Resource != "":
			out.Pressures = append(out.Pressures, s.last[i])
		case s.readFile(out, &problems, &s.host, i):
			s.last[i] = out.Pressures[len(out.Pressures)-1]
		default:
			s.last[i] = sample.Pressure{}
		}
		for _, scope := range s.scopes {
			if all || resource != sample.Memory {
				s.readFile(out, &problems, scope, i)
			}
		}
	}
	if s.began == 0 {
		s.began = out.At.Mono
	}
	if s.frozen(out) {
		out.Pressures = slices.DeleteFunc(out.Pressures, func(p sample.Pressure) bool { return p.Scope == sample.HostScope })
		if !s.still {
			s.still = true
			problems.Add(fmt.Errorf("the pressure in %s stands still, so it is left out: another program may write these "+
				"files, and stallspan check says what that costs", filepath.Join(s.root, "proc/pressure")))
		}
	}
	s.lacking = errors.Is(problems.Err(), errNoPSI) || s.lacking
	return problems.Err()
}

// frozen reports whether the pressure of the host has never grown, and should have.
func (s *Source) frozen(out *sample.Sample) bool {
	for i, resource := range resources {
		for _, p := range out.Pressures {
			if p.Scope != sample.HostScope || p.Resource != resource {
				continue
			}
			if out.At.Mono == s.began {
				s.first[i] = p.Some
			}
			s.moved = s.moved || p.Some != s.first[i]
		}
	}
	return !s.moved && out.At.Mono-s.began >= stillAfter
}

// readFile appends one reading. It reports whether there was one.
func (s *Source) readFile(out *sample.Sample, problems *sample.Problems, from *scope, i int) bool {
	some, full, err := read(from.files[i], s.buf[:])
	switch {
	case err == nil:
		out.Pressures = append(out.Pressures,
			sample.Pressure{Scope: from.name, Resource: resources[i], Some: some, Full: full})
	case from.name == sample.HostScope && hidden(err):
		if !s.lacking { // reported once: it cannot appear later
			problems.Add(errNoPSI)
		}
	case from.name == sample.HostScope:
		problems.Add(fmt.Errorf("cannot read the %s pressure of this machine: %w", resources[i], err))
	case hidden(err) && from.gone[i]:
	case hidden(err):
		from.gone[i] = true
		if _, missing := os.Lstat(filepath.Dir(from.files[i])); missing == nil { // else the cgroup has ended: no problem
			problems.Add(fmt.Errorf("cgroup %s has its pressure disabled: write 1 to its cgroup.pressure", from.name))
		}
	default:
		problems.Add(fmt.Errorf("cannot read the %s pressure of cgroup %s: %w", resources[i], from.name, err))
	}
	return err == nil
}

// hidden reports whether err means that the pressure does not exist, rather than a lack of permission. Without PSI the
// files are missing, or exist and cannot be read (before Linux 5.2). Open files of a removed cgroup return ENODEV.
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV)
}

// read returns the totals of a file.
func read(path string, buf []byte) (some, full time.Duration, err error) {
	text, err := kernfile.ReadPiece(path, buf)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("run as a user with access: %w", err)
	}
	if err != nil {
		return 0, 0, err
	}
	some, full, ok := parse(text)
	if full < 0 { // the CPU has it from Linux 5.13 on
		full, ok = 0, ok && strings.HasPrefix(filepath.Base(path), string(sample.CPU))
	}
	if !ok {
		err = fmt.Errorf("%s does not have the format of Linux, check what is mounted there", path)
	}
	return some, full, err
}

var (
	somePrefix = []byte("some ")
	fullPrefix = []byte("full ")
	totalField = []byte(" total=")
)

// parse reads the lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" and "full ...", totals in microseconds.
// full is -1 without such a line. The averages are not needed, because the totals give any average. Other lines are
// ignored.
func parse(text []byte) (some, full time.Duration, ok bool) {
	full = -1
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		switch {
		case bytes.HasPrefix(line, somePrefix):
			if some, ok = total(line); !ok {
				return 0, 0, false
			}
		case bytes.HasPrefix(line, fullPrefix):
			var fullOK bool
			if full, fullOK = total(line); !fullOK {
				return 0, 0, false
			}
		}
	}
	return some, full, ok
}

// total returns the number after "total=". It rejects numbers that exceed a Duration (292 years).
func total(line []byte) (time.Duration, bool) {
	at := bytes.Index(line, totalField)
	if at < 0 {
		return 0, false
	}
	digits, _, _ := bytes.Cut(line[at+len(totalField):], []byte{' '})
	micros, ok := kernfile.ParseUint(digits)
	if !ok || micros > math.MaxInt64/uint64(time.Microsecond) {
		return 0, false
	}
	return time.Duration(micros) * time.Microsecond, true
}
