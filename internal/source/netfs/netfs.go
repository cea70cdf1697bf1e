// Package netfs reads what the kernel counts for mounted file systems that are on no disk of this machine: NFS,
// FUSE and virtiofs, Lustre, Ceph; and for GPUDirect Storage.
//
// It reads files of /proc, /sys and debugfs alone. It never calls stat(2), statfs(2) or anything else on such a file
// system: with a server that hangs, that would block this program, too.
package netfs

import (
	"bytes"
	"path/filepath"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// period is the time between two readings. The requests that wait for a FUSE server are sampled with each tick.
const period = time.Second

// Bounds.
const (
	maxOfUser   = 4 // file systems that one user has mounted by FUSE: root is bounded by sample.MaxMounts alone
	firstBuffer = 16 << 10
	maxBuffer   = 8 << 20 // bytes of /proc/PID/mountstats: about a thousand mounts of NFS
	maxSmall    = 64 << 10
	maxFolders  = 256 // of Lustre and Ceph
	tryAgain    = time.Minute
)

// Source reads the mounts of process 1, or, without the right to that, of this process. It is not safe for concurrent
// use.
type Source struct {
	root  string
	list  *mount.List
	stats string // path of mountstats

	entries []mount.Entry // that mounts were made from; the list returns the same ones until they change
	mounts  []*mounted
	listed  time.Duration // monotonic: when the list was asked last
	last    time.Duration // of the last reading at a tick
	any     bool          // it has read a mount
	begun   bool

	direct time.Duration // before then, nvidia-fs is not looked for again

	buf, small []byte
}

// mounted is a file system that is read.
type mounted struct {
	sample.MountCounters

	from    family
	folder  string        // of its statistics, of Lustre and Ceph
	waiting string        // path of the number of requests that wait; "" if it cannot be read
	sampled time.Duration // monotonic: when Waiting was read; 0 before
	found   bool          // in this reading

	age  time.Duration        // since it was mounted; 0 if it is not known
	last sample.MountCounters // of the last reading
	at   sample.Stamp         // of it
}

// begin notes since when the counters of a mount count. One that is mounted again within a second shows by these.
func (m *mounted) begin(now sample.Stamp) {
	again := m.Began.Wall.IsZero()
	at := now
	for _, of := range [...][2]*sample.MountOperations{
		{&m.last.Read, &m.Read}, {&m.last.Write, &m.Write}, {&m.last.Other, &m.Other},
	} {
		if of[1].Operations < of[0].Operations || of[1].Bytes < of[0].Bytes {
			again, at = true, m.at
		}
	}
	if again && m.age > 0 {
		at = sample.Stamp{Mono: now.Mono - m.age, Wall: now.Wall.Add(-m.age)}
	}
	if again {
		m.Began = at
	}
	m.last, m.at = m.MountCounters, now
}

// family is where the statistics of a file system are.
type family uint8

const (
	ofNothing family = iota
	ofNFS
	ofFUSE
	ofLustre
	ofCeph
)

func familyOf(m *sample.Mount) family {
	switch m.Type {
	case "nfs", "nfs4":
		return ofNFS
	case "lustre":
		return ofLustre
	case "ceph":
		return ofCeph
	case "virtiofs": // is FUSE without a program
		return ofFUSE
	}
	if mount.Kind(m.Type) == mount.Fuse && !mount.HasBlockDevice(*m) {
		return ofFUSE
	}
	return ofNothing
}

// New returns a source for the files below root; "" or "/" is this machine.
func New(root string) *Source {
	s := &Source{root: filepath.Join("/", root), buf: make([]byte, firstBuffer), small: make([]byte, maxSmall)}
	process := s.path("proc/1")
	// Files of process 1 of another user cannot be read, but exist.
	if _, err := kernfile.ReadPiece(process+"/mountstats", s.small); err != nil {
		process = s.path("proc/self")
	}
	s.list, s.stats = mount.NewList(process+"/mountinfo"), process+"/mountstats"
	return s
}

func (s *Source) path(name string) string { return filepath.Join(s.root, name) }

// Read appends the counters once a second, and for edges. With every other tick it only samples the requests that wait.
func (s *Source) Read(out *sample.Sample) error {
	now := sample.Now()
	out.At = now
	due := out.Edge || !s.begun || now.Mono/period != s.last/period
	if !s.begun || now.Mono/period != s.listed/period {
		s.listed, s.begun = now.Mono, true
		s.find()
	}
	for _, m := range s.mounts {
		s.sample(m, now.Mono)
	}
	if !due {
		return nil
	}
	if !out.Edge {
		s.last = now.Mono
	}
	s.readDirect(out, now.Mono)
	s.any = s.any || len(s.mounts) > 0
	if out.MountsRead = s.any; !s.any {
		return nil
	}
	err := s.readAll(now.Mono)
	for _, m := range s.mounts {
		if m.found {
			m.begin(now)
			out.MountCounters = append(out.MountCounters, m.MountCounters)
		}
	}
	return err
}

// readAll reads the counters of all mounts. Those of FUSE have just been sampled.
func (s *Source) readAll(now time.Duration) (err error) {
	for _, m := range s.mounts {
		m.found = m.from == ofFUSE && m.waiting != "" && m.sampled > 0 && now-m.sampled <= longestStep
		switch m.from {
		case ofLustre:
			s.readLustre(m)
		case ofCeph:
			s.readCeph(m)
		}
	}
	if slices.ContainsFunc(s.mounts, func(m *mounted) bool { return m.from == ofNFS }) {
		err = s.readNFS()
	}
	return err
}

// find makes the list of file systems that are read, if the mounts have changed.
func (s *Source) find() {
	entries, _ := s.list.Entries() // lines that cannot be parsed are left out
	if len(entries) == len(s.entries) && (len(entries) == 0 || &entries[0] == &s.entries[0]) {
		return
	}
	s.entries = entries
	found := s.choose(entries)
	s.mounts = found
	s.findFolders()
	for _, m := range found {
		if m.from == ofFUSE && m.waiting == "" {
			s.openFUSE(m)
		}
	}
}

// choose returns the file systems that are read: those of networks first, because any user may mount FUSE. Of several
// on one point only the last one can be seen.
func (s *Source) choose(entries []mount.Entry) (found []*mounted) {
	ofUser := map[string]int{}
	for _, fuse := range []bool{false, true} {
		for i := range entries {
			e := &entries[i]
			from := familyOf(&e.Mount)
			if from == ofNothing || (from == ofFUSE) != fuse {
				continue
			}
			again := slices.ContainsFunc(found, func(m *mounted) bool { return m.Minor == e.Minor })
			covered := slices.ContainsFunc(entries[i+1:], func(x mount.Entry) bool { return x.Point == e.Point })
			if again || covered {
				continue
			}
			if user := e.Option("user_id"); user != "" && user != "0" {
				if ofUser[user]++; ofUser[user] > maxOfUser {
					continue
				}
			}
			if len(found) == sample.MaxMounts {
				return found
			}
			found = append(found, s.known(&e.Mount, from))
		}
	}
	return found
}

// known returns what is known of a mount, with its sums.
func (s *Source) known(m *sample.Mount, from family) *mounted {
	for _, old := range s.mounts {
		if old.Minor == m.Minor && old.Source == m.Source && old.Point == m.Point && old.Type == m.Type {
			return old
		}
	}
	return &mounted{from: from, MountCounters: sample.MountCounters{
		ID: m.Source + " " + m.Point, Source: m.Source, Point: m.Point, Type: m.Type, Minor: m.Minor,
	}}
}

// Close closes the list of mounts. Read opens it again.
func (s *Source) Close() {
	_ = s.list.Close()
	s.mounts, s.entries, s.begun = nil, nil, false
}

// readDirect reads the counters of GPUDirect Storage. Without its driver it looks again once a minute.
func (s *Source) readDirect(out *sample.Sample, now time.Duration) {
	if s.direct > now {
		return
	}
	text, err := kernfile.ReadWhole(s.path("proc/driver/nvidia-fs/stats"), s.small, maxSmall)
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
	for line := range bytes.Lines(text) {
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
