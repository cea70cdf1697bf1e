package netfs

import (
	"bytes"
	"errors"
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// errNFS is the error of a mount of NFS that is listed and has no counters.
var errNFS = errors.New("/proc/PID/mountstats has no counters of a mount of NFS: its reads and waiting are not known")

// readNFS reads the counters of all mounts of NFS.
func (s *Source) readNFS() error {
	text, err := kernfile.ReadWhole(s.stats, s.buf, maxBuffer)
	if s.buf = text; err != nil {
		return err
	}
	eachNFS(text, func(point []byte, c *sample.MountCounters, age time.Duration) {
		for _, m := range s.mounts {
			if m.from == ofNFS && m.Point == mount.Unescape(string(point)) { // the last one covers those before
				c.ID, c.Source, c.Point, c.Type, c.Minor, c.Began = m.ID, m.Source, m.Point, m.Type, m.Minor, m.Began
				m.MountCounters, m.age, m.found = *c, age, true
			}
		}
	})
	for _, m := range s.mounts {
		if m.from == ofNFS && !m.found {
			return errNFS
		}
	}
	return nil
}

// eachNFS parses /proc/PID/mountstats (fs/nfs/super.c, nfs_show_stats; net/sunrpc/stats.c, rpc_clnt_show_stats), and
// yields the mounts of NFS with counters, and with the time since they were mounted, in seconds; 0 if it is not known.
// Lines that it does not know are left out: each kernel may add some.
func eachNFS(text []byte, yield func(point []byte, c *sample.MountCounters, age time.Duration)) {
	var c sample.MountCounters
	var point []byte
	var age time.Duration
	operations := false
	end := func() {
		if point != nil && c.Has != 0 {
			yield(point, &c, age)
		}
		c, point, age, operations = sample.MountCounters{}, nil, 0, false
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("device ")); ok {
			end()
			point = nfsPoint(bytes.TrimSuffix(rest, []byte{'\n'}))
			continue
		}
		if point == nil {
			continue
		}
		name, rest, found := bytes.Cut(bytes.TrimSpace(line), []byte{':'})
		if !found {
			operations = operations || string(name) == "per-op statistics"
			continue
		}
		if operations {
			addOperation(&c, name, rest)
			continue
		}
		switch string(name) {
		case "age":
			n, _ := kernfile.ParseUint(bytes.TrimSpace(rest))
			age = sum(0, n, time.Second)
		case "opts":
			c.ReadSize = option(rest, "rsize=")
		case "nfsv4":
			c.Session = bytes.Contains(rest, []byte(",sessions,"))
		case "bytes":
			addBytes(&c, rest)
		case "xprt":
			c.Connections++
		}
	}
	end()
}

// nfsPoint returns the escaped mount point of "SOURCE mounted on POINT with fstype nfs4 statvers=1.1"; nil of other
// file systems and without counters.
func nfsPoint(line []byte) []byte {
	_, rest, found := bytes.Cut(line, []byte(" mounted on "))
	point, rest, ok := bytes.Cut(rest, []byte(" with fstype "))
	fsType, version, counted := bytes.Cut(rest, []byte{' '})
	if !found || !ok || !counted || string(fsType) != "nfs" && string(fsType) != "nfs4" ||
		!bytes.HasPrefix(version, []byte("statvers=")) {
		return nil
	}
	return point
}

// option returns the number of an option such as "rsize="; 0 without it.
func option(options []byte, name string) uint64 {
	for one := range bytes.SplitSeq(bytes.TrimSpace(options), []byte{','}) {
		if rest, ok := bytes.CutPrefix(one, []byte(name)); ok {
			n, _ := kernfile.ParseUint(rest)
			return n
		}
	}
	return 0
}

// addBytes takes over "bytes: read written direct-read direct-written from-server to-server ...". The first four are of
// calls of programs.
func addBytes(c *sample.MountCounters, line []byte) {
	var n [6]uint64
	if numbers(line, n[:]) < len(n) {
		return
	}
	c.Called = plus(n[0], n[2])
	c.Read.Bytes, c.Write.Bytes = n[4], n[5]
	c.Has |= sample.HasMountCalled
}

// addOperation takes over "NAME: operations transmissions timeouts sent received queue round-trip execute ...", with
// times in milliseconds.
func addOperation(c *sample.MountCounters, name, line []byte) {
	var n [8]uint64
	if numbers(line, n[:]) < len(n) {
		return
	}
	c.Has |= sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime | sample.HasMountTransport
	of := &c.Other
	switch string(name) {
	case "READ", "READ_PLUS":
		of = &c.Read
	case "WRITE":
		of = &c.Write
	}
	of.Operations = plus(of.Operations, n[0])
	of.Queue = sum(of.Queue, n[5], time.Millisecond)
	of.RoundTrip = sum(of.RoundTrip, n[6], time.Millisecond)
	of.Time = sum(of.Time, n[7], time.Millisecond)
	c.Retransmissions = plus(c.Retransmissions, n[1]-min(n[0], n[1]))
	c.Timeouts = plus(c.Timeouts, n[2])
}

// numbers parses decimal numbers with blanks between them, and returns how many of them there are.
func numbers(line []byte, into []uint64) (count int) {
	for word := range bytes.FieldsSeq(line) {
		n, ok := kernfile.ParseUint(word)
		if !ok || count == len(into) {
			break
		}
		into[count] = n
		count++
	}
	return count
}

// plus saturates, so that no text of a file can make a counter overflow.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// sum adds a number of units to a time, and saturates.
func sum(t time.Duration, n uint64, unit time.Duration) time.Duration {
	if n > uint64((math.MaxInt64-t)/unit) {
		return math.MaxInt64
	}
	return t + time.Duration(n)*unit
}
