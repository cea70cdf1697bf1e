// Package pressure reads pressure stall information (Documentation/accounting/psi.rst): for how long tasks have
// waited for the CPU, for memory and for I/O, on the whole machine and in chosen cgroups.
package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// mostScopes bounds the cgroups that are read beside the host: three files and about 2 us each at every tick.
const mostScopes = 64

// The order of reading: I/O first, because the reading's time is taken just before.
var resources = [...]sample.Resource{sample.IO, sample.Memory, sample.CPU}

var errNoPSI = errors.New("no pressure stall information: boot with psi=1 (the kernel needs CONFIG_PSI)")

// Source reads one sample.Pressure for each resource of the host and of each cgroup that was added. The totals are
// exact to the microsecond at the moment they are read. It keeps its files open. Read, Add, Remove and Close may be
// called concurrently.
type Source struct {
	root string

	mu      sync.Mutex
	host    scope
	lacking bool // that this kernel has no pressure has been told
	scopes  []*scope
	buf     [512]byte // a pressure file has two lines of at most 80 bytes

	whole time.Duration                   // sample.Stamp.Mono of the last reading that had all of it
	kept  [len(resources)]sample.Pressure // of the host; without a Resource where the last try failed
}

// seldom is how often a reading has all of it. The others have the I/O, and of cgroups also the CPU, which ledgers are
// made of; the host's memory and CPU are repeated, up to a second old, for no verdict asks for them.
const seldom = 950 * time.Millisecond // once a second, for ticks that come a little early

// scope is a cgroup, or the host, with one file a resource.
type scope struct {
	name  string               // sample.HostScope, or the cgroup's path
	users int                  // how many Adds have had no Remove yet
	gone  [len(resources)]bool // that it is gone has been told
	files [len(resources)]file
}

// New prepares a source that reads root+"/proc/pressure" and the cgroup v2 tree below root; root is "" or "/" for
// this machine. Nothing is opened yet.
func New(root string) *Source {
	s := &Source{root: filepath.Join("/", root)}
	for i, resource := range resources {
		s.host.files[i].path = filepath.Join(s.root, "proc/pressure", string(resource))
	}
	return s
}

// Add lets the next readings contain the pressure of a cgroup, given by its path as in /proc/PID/cgroup; ScopeOf
// finds it. Each Add needs its Remove: a scope that was added twice is read once and goes at the second Remove. On
// an error nothing was added: the cgroup does not exist, has no pressure, or 64 others are read already.
func (s *Source) Add(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.scopes {
		if known.name == name {
			known.users++
			return nil
		}
	}
	if len(s.scopes) == mostScopes {
		return fmt.Errorf("cannot read the pressure of cgroup %s: %d others are being read already, end one of those first", name, mostScopes)
	}
	dir, err := cgroup.Dir(s.root, name)
	if err != nil {
		return err
	}
	added := &scope{name: name, users: 1}
	readable := 0
	for i, resource := range resources {
		added.files[i].path = filepath.Join(dir, string(resource)+".pressure")
		if _, _, readErr := added.files[i].read(s.buf[:]); readErr == nil {
			readable++
		} else if err == nil {
			err = readErr
		}
	}
	if readable == 0 {
		if hidden(err) {
			return fmt.Errorf("cgroup %s has no pressure: check that it exists, boot with psi=1, write 1 to its cgroup.pressure: %w", name, err)
		}
		return fmt.Errorf("cannot read the pressure of cgroup %s: %w", name, err)
	}
	s.scopes = append(s.scopes, added)
	return nil
}

// Remove takes back one Add. A scope that is not known is ignored.
func (s *Source) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.scopes {
		if known.name != name {
			continue
		}
		if known.users--; known.users == 0 {
			known.close()
			s.scopes = append(s.scopes[:i], s.scopes[i+1:]...)
		}
		return
	}
}

// Read appends the pressures, at most ordinary ticks those alone that ledgers are made of (see seldom): all of I/O, then all of memory, then all of the CPU, and within each the host before
// the cgroups in the order they were added. What cannot be read is left out and told in the error.
func (s *Source) Read(out *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems sample.Problems
	out.At = sample.Now()
	all := out.Edge || s.whole == 0 || out.At.Mono-s.whole >= seldom
	if all {
		s.whole = out.At.Mono
	}
	for i, resource := range resources {
		switch {
		case !all && resource != sample.IO && s.kept[i].Resource != "":
			out.Pressures = append(out.Pressures, s.kept[i])
		case s.readFile(out, &problems, &s.host, i):
			s.kept[i] = out.Pressures[len(out.Pressures)-1]
		default:
			s.kept[i] = sample.Pressure{}
		}
		for _, scope := range s.scopes {
			if all || resource != sample.Memory {
				s.readFile(out, &problems, scope, i)
			}
		}
	}
	s.lacking = errors.Is(problems.Err(), errNoPSI) || s.lacking
	return problems.Err()
}

// readFile says whether there was a reading to append.
func (s *Source) readFile(out *sample.Sample, problems *sample.Problems, from *scope, i int) bool {
	some, full, err := from.files[i].read(s.buf[:])
	switch {
	case err == nil:
		out.Pressures = append(out.Pressures, sample.Pressure{Scope: from.name, Resource: resources[i], Some: some, Full: full})
	case from.name == sample.HostScope && hidden(err):
		if !s.lacking { // told once: it will not come
			problems.Add(errNoPSI)
		}
	case from.name == sample.HostScope:
		problems.Add(fmt.Errorf("cannot read the %s pressure of this machine: %w", resources[i], err))
	case hidden(err) && from.gone[i]:
	case hidden(err): // as when its last process has ended: told once
		from.gone[i] = true
		problems.Add(fmt.Errorf("cgroup %s is gone or its pressure is switched off: its pressure is no longer read", from.name))
	default:
		problems.Add(fmt.Errorf("cannot read the %s pressure of cgroup %s: %w", resources[i], from.name, err))
	}
	return err == nil
}

// Close gives the kept files back. A later Read opens them again.
func (s *Source) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host.close()
	for _, scope := range s.scopes {
		scope.close()
	}
}

func (s *scope) close() {
	for i := range s.files {
		s.files[i].close()
	}
}

// hidden tells whether err means that there is no such pressure, rather than that this process may not see it.
// Without PSI the files are missing, or (Linux before 5.2) there and not readable; a removed cgroup's files give
// ENODEV to who still has them open.
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV)
}
