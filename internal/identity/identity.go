// Package identity says who a process is, from the outside: its pod, container, Slurm job, systemd unit, user and
// program. It is what a resource of OpenTelemetry needs, so that one job is one resource.
//
// What the kernel and root say comes first: the process's cgroup, its user and its executable. Names of cgroups are
// believed only where no user may choose them (path.go). What a process says of itself is a claim. A claim never
// replaces what is known from outside, and is marked as one.
package identity

import (
	"cmp"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/semconv"
)

// Bounds of an identity.
const (
	maxAttributes = 32
	maxKey        = 128 // bytes
	maxValue      = 256 // bytes
)

// Kinds of jobs.
const (
	Pod       = "pod"       // a container of Kubernetes
	Slurm     = "slurm"     // a step of a Slurm job
	Container = "container" // any other container
	Unit      = "unit"      // a service of systemd
	Process   = "process"   // none of these
)

// Attribute is an attribute of a resource.
type Attribute struct {
	Key, Value string
	Claimed    bool // by the process or its user, and no other source knows it
}

// ended is who a process is that has ended, or that may not be seen.
var ended = Identity{Client: locate.Unknown}

// Identity is who a process is.
type Identity struct {
	Attributes []Attribute // sorted by key; do not change them
	Name       string      // short, for people: see name
	User       string      // its real user: a name, or a number without one
	Kind       string      // one of the constants; "" for a process that has ended
	Client     string      // whose it is: see locate.Owner
}

// Options are for New.
type Options struct {
	Owners       *locate.Owners // of the processes below root; nil for new ones
	PodResources string         // the kubelet's socket; "" for its usual place below root, or Off
}

// Finder finds identities. It is safe for concurrent use, and caches up to maxCached of them.
type Finder struct {
	proc   string
	owners *locate.Owners
	users  users
	pods   pods
	asking sample.Tasks // processes

	mu      sync.Mutex // guards the fields below; not held while files are read
	known   map[int]*entry
	readers map[string]*reader // by user and container
}

// entry is a cached identity.
type entry struct {
	start   uint64 // of the process, another process may get its number
	first   time.Time
	again   time.Time // when it is to be read again
	current Identity
	claims  *claims  // nil until they have been read, once
	gpus    []string // that it was last seen to use
	owner   string   // its user, and the container that root says
}

const (
	maxCached = 4096
	maxGPUs   = 64
	// A process may enter its cgroup after its start, so an identity is read again: soon at first, then rarely.
	readSoon   = time.Second
	readRarely = time.Minute
)

// New returns a Finder for the machine with "/" at root ("/hostfs" in a container).
func New(root string, o Options) *Finder {
	root = filepath.Join("/", root)
	switch o.PodResources {
	case "":
		o.PodResources = filepath.Join(root, podResourcesSocket)
	case Off:
		o.PodResources = ""
	}
	if o.Owners == nil {
		o.Owners = locate.NewOwners(root)
	}
	return &Finder{
		owners: o.Owners, proc: filepath.Join(root, "proc"), users: users{root: root, lookUp: user.LookupId},
		pods: pods{root: root, socket: o.PodResources, given: make(map[podName]claimant)}, known: make(map[int]*entry),
		readers: make(map[string]*reader),
	}
}

// Of returns who a process is. It reads one small file if the answer is cached, and a few otherwise. What the process
// says of itself, and what the kubelet says, is read in the background, and is in later answers. gpus are the UUIDs of
// the GPUs and MIG slices that the process uses, if they are known: the kubelet names pods by them. While the kernel
// does not answer for the process, it is who it was before.
func (f *Finder) Of(pid int, gpus ...string) Identity {
	if pid <= 0 {
		return ended
	}
	i, err := procfile.Do(f.proc, pid, func() Identity { return f.of(pid, gpus) })
	if err == nil {
		return i
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.known[pid]; e != nil {
		return e.current
	}
	return ended
}

// of is Of on a goroutine that may wait for the process.
func (f *Finder) of(pid int, gpus []string) Identity {
	start, ok := startOf(f.proc, pid)
	if !ok {
		f.forget(pid)
		return ended
	}
	now := time.Now()
	e := f.cached(pid, start, now)
	if gpus = gpus[:min(len(gpus), maxGPUs)]; len(gpus) > 0 && !slices.Equal(gpus, e.gpus) {
		e.gpus, e.again = slices.Clone(gpus), time.Time{}
	}
	if now.Before(e.again) {
		return e.current
	}
	program := programOf(f.proc, pid)
	if e.claims != nil && e.claims.program != program {
		e.claims, e.first = nil, now
	}
	var named bool
	e.current, named = f.read(pid, program, &e)
	e.again = now.Add(min(max(readSoon, now.Sub(e.first)), readRarely))
	if !named {
		e.again = now.Add(readSoon)
	}
	f.keep(pid, e, now)
	if e.claims == nil {
		f.ask(process{pid, start}, e.owner)
	}
	return e.current
}

// Close waits for what is read in the background. Of must not be called after it.
func (f *Finder) Close() {
	f.mu.Lock()
	for _, r := range f.readers {
		r.waiting = nil
	}
	f.mu.Unlock()
	f.asking.Stop(closeIn)
	f.users.asking.Stop(closeIn)
	f.pods.asking.Stop(askTimeout + closeIn)
}

// cached returns the entry of a process, or a new one.
func (f *Finder) cached(pid int, start uint64, now time.Time) entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.known[pid]; e != nil && e.start == start {
		return *e
	}
	return entry{start: start, first: now}
}

// keep caches an entry. A full cache drops what is due to be read again, or else all of it.
func (f *Finder) keep(pid int, e entry, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[pid] == nil && len(f.known) >= maxCached {
		for other, old := range f.known {
			if old.again.Before(now) {
				delete(f.known, other)
			}
		}
		if len(f.known) >= maxCached {
			clear(f.known)
		}
	}
	f.known[pid] = &e
}

func (f *Finder) forget(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, pid)
}

// read reads the files of a process. path is that of its program. It reports whether its pod has a name, or it is in
// none.
func (f *Finder) read(pid int, path string, e *entry) (i Identity, named bool) {
	buf, ok := buffers.Get().(*[maxText]byte)
	if !ok {
		buf = new([maxText]byte)
	}
	defer buffers.Put(buf)
	at := placeOf(readFile(f.proc, pid, "cgroup", buf), f.owners.Groups.Own(), f.owners.Groups.OfRoot)
	for _, stepd := range f.owners.Groups.Processes(at.stepd) {
		at.job = cmp.Or(at.job, jobInTitle(string(readFile(f.proc, stepd, "cmdline", buf))))
	}
	program, called := executable(f.proc, pid, path, buf)
	uid, _ := kernfile.UserIDs(readFile(f.proc, pid, "status", buf))
	owner := f.users.name(int64(uid))
	e.owner = owner
	if !at.own { // else the user could be any number of them
		e.owner += " " + at.container
	}
	var in podName
	named = at.pod == ""
	if !named {
		in, named = f.pods.of(at.pod, at.container, e.gpus)
	}

	var l list
	l.add(semconv.K8SNamespaceNameKey, in.namespace, false)
	l.add(semconv.K8SPodNameKey, in.pod, false)
	l.add(semconv.K8SContainerNameKey, in.container, false)
	l.add(semconv.K8SPodUIDKey, at.pod, false)
	l.add(semconv.ContainerIDKey, at.container, at.own)
	l.add(semconv.SlurmJobIDKey, at.job, false)
	l.add(semconv.SlurmSluidKey, at.sluid, false)
	l.add(semconv.SlurmStepIDKey, at.step, false)
	l.add(semconv.SystemdUnitNameKey, at.unit, false)
	l.add(semconv.SystemdUserUnitKey, at.userUnit, true)
	l.add(semconv.ProcessOwnerKey, owner, false)
	l.add(semconv.ProcessExecutableNameKey, program, called)
	if e.claims != nil {
		l.claims(e.claims, &at)
	}
	short := in.pod
	if short == "" {
		short = name(&at, func() string { return commandOf(f.proc, pid, program) })
	}
	return Identity{
		Attributes: l.sorted(), Name: clean(short, maxValue), User: clean(owner, maxValue), Kind: kind(&at),
		Client: f.owners.Client(pid),
	}, named
}

// ofOne are the attributes that differ among the processes of a cgroup.
var ofOne = []string{
	string(semconv.ProcessExecutableNameKey), string(semconv.NvDlRankKey), string(semconv.NvDlLocalRankKey),
}

// OfGroup returns who all processes of a cgroup are, where i is one of them: without what may differ among them. A
// cgroup that is of no pod, container, job or unit is named by the last part of its path.
func (i Identity) OfGroup(path string) Identity {
	i.Attributes = slices.DeleteFunc(slices.Clone(i.Attributes), func(a Attribute) bool {
		return slices.Contains(ofOne, a.Key)
	})
	if i.Kind == Process {
		i.Name = clean(filepath.Base(path), maxValue)
	}
	return i
}

func kind(at *place) string {
	switch {
	case at.pod != "":
		return Pod
	case at.job != "" || at.sluid != "":
		return Slurm
	case at.container != "":
		return Container
	case isService(at.unit) || isService(at.userUnit):
		return Unit
	}
	return Process
}

// shortDigits are enough of an ID for people, as "docker ps" prints it.
const shortDigits = 12

// name returns the name of a job, if no source knows the name of its pod: the UID of its pod, else its Slurm job, unit,
// container or program.
func name(at *place, program func() string) string {
	switch {
	case at.pod != "":
		return "pod " + at.pod
	case at.job != "" || at.sluid != "":
		return "job " + cmp.Or(at.job, at.sluid)
	case isService(at.userUnit):
		return at.userUnit
	case isService(at.unit):
		return at.unit
	case at.container != "":
		return "container " + at.container[:shortDigits]
	}
	return program()
}

// isService reports whether a unit is one with a chosen name: a service, or a scope that is not of a login, nor one of
// systemd-run.
func isService(unit string) bool {
	stem, scope := strings.CutSuffix(unit, ".scope")
	if !scope {
		return unit != "" && !isManager(unit)
	}
	return stem != "init" && !strings.HasPrefix(stem, "session-") && !strings.HasPrefix(stem, "run-")
}

// list collects the attributes of one process, with those that are most reliable first.
type list []Attribute

func (l *list) add(key attribute.Key, value string, claimed bool) {
	value = clean(value, maxValue)
	known := func(a Attribute) bool { return a.Key == string(key) }
	if value == "" || len(*l) == maxAttributes || slices.ContainsFunc(*l, known) {
		return
	}
	*l = append(*l, Attribute{Key: string(key), Value: value, Claimed: claimed})
}

func (l *list) sorted() []Attribute {
	slices.SortFunc(*l, func(a, b Attribute) int { return cmp.Compare(a.Key, b.Key) })
	return *l
}

// clean returns valid text of at most that many bytes, without what a terminal would obey.
func clean(text string, most int) string {
	text = text[:min(len(text), 4*most)]
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return strings.TrimSpace(text)
}
