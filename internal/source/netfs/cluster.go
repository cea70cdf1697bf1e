package netfs

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// lustreFolders are where Lustre has its statistics of mounts, by its version. Those below debug are for root alone.
var lustreFolders = []string{"proc/fs/lustre/llite", "sys/fs/lustre/llite", "sys/kernel/debug/lustre/llite"}

const cephFolder = "sys/kernel/debug/ceph"

// findFolders finds the statistics of the mounts of Lustre and Ceph. They are left out without the right to read them.
func (s *Source) findFolders() {
	for _, m := range s.mounts {
		m.folder = ""
		switch m.from {
		case ofLustre:
			// The folder is called FILESYSTEM-ADDRESS, and the source is SERVERS:/FILESYSTEM[/FOLDER].
			_, name, _ := strings.Cut(m.Source, ":/")
			name, _, _ = strings.Cut(name, "/")
			for _, folder := range lustreFolders {
				if m.folder == "" {
					m.folder = s.only(folder, func(found string) bool {
						return name != "" && found[:max(0, strings.LastIndexByte(found, '-'))] == name
					})
				}
			}
		case ofCeph:
			// The folder is called FSID.clientNUMBER. New sources contain the FSID; with others it must be the only one.
			m.folder = s.only(cephFolder, func(found string) bool {
				fsid, _, _ := strings.Cut(found, ".client")
				return strings.Contains(m.Source, "@"+fsid+".") || !strings.Contains(m.Source, "@")
			})
		}
	}
}

// only returns the path of the one folder with a name that fits; "" if there are several.
func (s *Source) only(folder string, fits func(name string) bool) (path string) {
	names, _ := kernfile.Names(s.path(folder), maxFolders)
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && fits(name) {
			if path != "" {
				return ""
			}
			path = s.path(folder + "/" + name)
		}
	}
	return path
}

func (s *Source) readLustre(m *mounted) {
	if m.folder == "" {
		return
	}
	if text, err := kernfile.ReadWhole(m.folder+"/stats", s.small, maxSmall); err == nil {
		m.found = parseLustre(text, &m.MountCounters)
	}
}

// parseLustre parses llite/*/stats: "NAME COUNT samples [UNIT] MIN MAX SUM ...". They are calls of programs, which the
// page cache may answer. Older versions count most of them without their time: "[regs]".
func parseLustre(text []byte, c *sample.MountCounters) bool {
	var read, write, other sample.MountOperations
	known := false
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 4 || string(words[2]) != "samples" {
			continue
		}
		count, ok := kernfile.ParseUint(words[1])
		if !ok {
			continue
		}
		var total uint64
		if len(words) >= 7 {
			total, _ = kernfile.ParseUint(words[6])
		}
		micro := string(words[3]) == "[usec]" || string(words[3]) == "[usecs]"
		switch name := string(words[0]); {
		case name == "read_bytes":
			read.Operations, read.Bytes, known = count, total, true
		case name == "write_bytes":
			write.Operations, write.Bytes, known = count, total, true
		case name == "read" && micro:
			read.Time, c.Has = sum(0, total, time.Microsecond), c.Has|sample.HasMountTime
		case name == "write" && micro:
			write.Time, c.Has = sum(0, total, time.Microsecond), c.Has|sample.HasMountTime
		case lustreOther[name]:
			other.Operations = plus(other.Operations, count)
			if micro {
				other.Time = sum(other.Time, total, time.Microsecond)
			}
		}
	}
	if known {
		c.Has |= sample.HasMountOperations | sample.HasMountCalled
		c.Read, c.Write, c.Other, c.Called = read, write, other, read.Bytes
	}
	return known
}

// lustreOther are the calls that count as Other.
var lustreOther = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq("open close readdir setattr truncate flock getattr statfs alloc_inode setxattr " +
		"getxattr listxattr removexattr inode_permission create mkdir mknod link unlink symlink rmdir rename fsync") {
		names[name] = true
	}
	return names
}()

// readCeph reads "metrics", which is a folder of "latency" and "size" since Linux 5.16.
func (s *Source) readCeph(m *mounted) {
	if m.folder == "" {
		return
	}
	m.found = false
	for _, name := range []string{"/metrics", "/metrics/latency", "/metrics/size"} {
		if text, err := kernfile.ReadWhole(m.folder+name, s.small, maxSmall); err == nil {
			m.found = parseCeph(text, &m.MountCounters) || m.found
		}
	}
}

// parseCeph parses tables of fs/ceph/debugfs.c. Each begins with "item total ..." and has rows of read, write and
// metadata. Of latencies it has the mean in microseconds; of sizes the sum in bytes, in the last column.
func parseCeph(text []byte, c *sample.MountCounters) (known bool) {
	const latency, size = 1, 2
	table := 0
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) < 3 {
			continue
		}
		if string(words[0]) == "item" {
			switch {
			case string(words[2]) == "avg_lat(us)":
				table = latency
			case string(words[len(words)-1]) == "total_sz(bytes)":
				table = size
			default:
				table = 0
			}
			continue
		}
		var of *sample.MountOperations
		switch string(words[0]) {
		case "read":
			of = &c.Read
		case "write":
			of = &c.Write
		case "metadata":
			of = &c.Other
		}
		count, ok1 := kernfile.ParseUint(words[1])
		mean, ok2 := kernfile.ParseUint(words[2])
		total, ok3 := kernfile.ParseUint(words[len(words)-1])
		switch {
		case of == nil || !ok1:
		case table == latency && ok2:
			took := sum(0, times(count, mean), time.Microsecond)
			if count >= of.Operations {
				took = max(took, of.Time) // the mean is rounded
			}
			of.Operations, of.Time = count, took
			c.Has |= sample.HasMountOperations | sample.HasMountRequests | sample.HasMountTime
			known = true
		case table == size && ok3 && of != &c.Other:
			of.Bytes, known = total, true
		}
	}
	return known
}

// times saturates.
func times(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}
