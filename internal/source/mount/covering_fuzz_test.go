package mount

import (
	"strings"
	"testing"
)

// The mount that covers a path has a point above the path, and there is one wherever the root is mounted.
func FuzzCovering(f *testing.F) {
	const root = "1 0 8:1 / / rw - ext4 /dev/a rw\n"
	f.Add(root+"2 1 8:2 / /data rw - ext4 /dev/b rw\n3 2 8:3 / /data rw - xfs /dev/c rw\n", "data/x")
	f.Add(root+"2 3 8:2 / /a rw - ext4 /dev/b rw\n3 2 8:3 / /a/b rw - xfs /dev/c rw\n", "a/b/c")
	f.Add("7 9 0:1 /x /x rw - tmpfs t rw\n", "x")
	f.Fuzz(func(t *testing.T, text, path string) {
		path = "/" + path
		entries, _ := Entries(strings.NewReader(text))
		entry, found := Covering(entries, path)
		if found && !within(path, entry.Point) {
			t.Errorf("%q: got %+v, which does not cover it", path, entry)
		}
		for i := range entries {
			if !found && within(path, entries[i].Point) {
				t.Errorf("%q: got none of %+v", path, entries)
			}
		}
	})
}
