// Package mount reads the kernel's list of mounted file systems and returns the kind of storage of each.
package mount

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxText bounds a mountinfo file in bytes: about 80,000 mounts.
const maxText = 8 << 20

// Entry is one line of mountinfo, with fields that sample.Mount does not have.
type Entry struct {
	sample.Mount
	Parent  int    // ID of the mount on which it is mounted
	options string // of the file system, escaped
}

// HasOption reports whether the file system has an option without a value, such as a controller of cgroup v1.
func (e *Entry) HasOption(name string) bool {
	return slices.Contains(strings.Split(e.options, ","), name)
}

// Option returns the value of an option of the file system, such as user_id of FUSE, as the kernel escapes it; ""
// without it.
func (e *Entry) Option(name string) string {
	for option := range strings.SplitSeq(e.options, ",") {
		if key, value, _ := strings.Cut(option, "="); key == name {
			return value
		}
	}
	return ""
}

// Parse parses /proc/PID/mountinfo (Documentation/filesystems/proc.rst, section 3.5) in the order of the kernel: of two
// mounts with the same Point, the later covers the earlier. The error counts lines that cannot be parsed and quotes the
// first. All other lines are returned.
func Parse(r io.Reader) ([]sample.Mount, error) {
	entries, err := Entries(r)
	mounts := make([]sample.Mount, len(entries))
	for i := range entries {
		mounts[i] = entries[i].Mount
	}
	return mounts, err
}

// Entries is Parse with what Covering and Layers need.
func Entries(r io.Reader) ([]Entry, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		err = fmt.Errorf("mountinfo could not be read completely, so mounts may be missing: %w", err)
	}
	if len(text) > maxText {
		err = fmt.Errorf("mountinfo exceeds %d MiB: the mounts after that are ignored", maxText>>20)
		text = text[:bytes.LastIndexByte(text[:maxText], '\n')+1]
	}
	var entries []Entry
	var number, bad, firstBad int
	var quoted string
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		entry, ok := parseLine(line)
		if !ok {
			if bad++; bad == 1 {
				firstBad, quoted = number, line[:min(len(line), 80)]
			}
			continue
		}
		entries = append(entries, entry)
	}
	if bad > 0 {
		skipped := fmt.Errorf("mountinfo: %d line(s) cannot be parsed and are left out, the first is line %d: %q",
			bad, firstBad, quoted)
		if err == nil {
			return entries, skipped
		}
		err = fmt.Errorf("%w; %w", err, skipped)
	}
	return entries, err
}

// parseLine parses "ID parent major:minor root point options [tag...] - type source options". Fields are separated by
// one space, because a source may be empty.
func parseLine(line string) (Entry, bool) {
	var fields [6]string
	rest := line
	for i := range fields {
		var found bool
		if fields[i], rest, found = strings.Cut(rest, " "); !found {
			return Entry{}, false
		}
	}
	for tag := ""; tag != "-"; {
		var found bool
		if tag, rest, found = strings.Cut(rest, " "); !found {
			return Entry{}, false
		}
	}
	fsType, rest, found := strings.Cut(rest, " ")
	source, options, hasOptions := strings.Cut(rest, " ")
	if !found || !hasOptions || fsType == "" {
		return Entry{}, false
	}
	id, idErr := strconv.ParseUint(fields[0], 10, 31)
	parent, parentErr := strconv.ParseUint(fields[1], 10, 31)
	if idErr != nil || parentErr != nil {
		return Entry{}, false
	}
	majorText, minorText, found := strings.Cut(fields[2], ":")
	major, majorErr := strconv.ParseUint(majorText, 10, 32)
	minor, minorErr := strconv.ParseUint(minorText, 10, 32)
	point := Unescape(fields[4])
	if !found || majorErr != nil || minorErr != nil || !strings.HasPrefix(point, "/") {
		return Entry{}, false
	}
	return Entry{
		Mount: sample.Mount{
			ID: int(id), Point: point, Type: Unescape(fsType), Source: Unescape(source), Root: Unescape(fields[3]),
			Major: uint32(major), Minor: uint32(minor),
		},
		Parent:  int(parent),
		options: options,
	}, true
}

// Unescape decodes a name in a list of mounts: the kernel's octal escapes of blanks and backslashes ("\040" is a
// space). Invalid escapes stay.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Covering returns the mount that contains path, which must be absolute, clean and free of symbolic links. It walks
// down the tree of mounts like the kernel, so that it does not find a mount that is hidden by a later one. The order of
// lines and the length of mount points are not sufficient.
func Covering(entries []Entry, path string) (Entry, bool) {
	byID := make(map[int]bool, len(entries))
	for i := range entries {
		byID[entries[i].ID] = true
	}
	at := -1
	for i := range entries {
		e := &entries[i]
		if e.Point == "/" && (!byID[e.Parent] || e.Parent == e.ID) {
			at = i // the parent of the root is not visible to this process
		}
	}
	if at < 0 {
		return longest(entries, path)
	}
	for range entries { // each step goes one mount deeper
		next := -1
		for i := range entries {
			e := &entries[i]
			if i == at || e.Parent != entries[at].ID || e.ID == e.Parent || !within(path, e.Point) ||
				!within(e.Point, entries[at].Point) {
				continue
			}
			if next < 0 || len(e.Point) <= len(entries[next].Point) {
				next = i // the walk reaches the shortest point first
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return entries[at], true
}

// longest is the best guess without a visible root, as after a chroot into a directory that is not a mount.
func longest(entries []Entry, path string) (Entry, bool) {
	best := -1
	for i := range entries {
		if within(path, entries[i].Point) && (best < 0 || len(entries[i].Point) >= len(entries[best].Point)) {
			best = i
		}
	}
	if best < 0 {
		return Entry{}, false
	}
	return entries[best], true
}

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	rest, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return found && (rest == "" || rest[0] == '/')
}
