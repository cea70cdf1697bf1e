package cgroup

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestScopeOf(t *testing.T) {
	hybrid := fixture.Root(t, "pressure_hybrid")
	fixture.Write(t, hybrid, "proc/5/cgroup", []byte("0::/job\n"))
	if scope, err := ScopeOf(hybrid, 5); err != nil || scope != "/job" {
		t.Errorf("got %q, %v", scope, err)
	}
	if _, err := ScopeOf(hybrid, 77); err == nil || !strings.Contains(err.Error(), "mount one") {
		t.Errorf("a process in cgroup v1 alone: %v", err)
	}
	if _, err := ScopeOf(hybrid, 99); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such process: %v", err)
	}
}

func TestMountpoint(t *testing.T) {
	for name, want := range map[string]string{
		"pressure_v2":     "/sys/fs/cgroup", // and not the mount that shows one service only
		"pressure_hybrid": "/sys/fs/cgroup/unified",
	} {
		root := fixture.Root(t, name)
		if got, err := Mountpoint(root); err != nil || got != filepath.Join(root, want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// In a container with the host at /hostfs, our own list of mounts shows the host's tree below /hostfs.
func TestMountpointInContainer(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "sys/fs/cgroup/cgroup.procs", nil)
	fixture.Write(t, root, "proc/self/mountinfo", []byte(
		"30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"+
			"90 24 0:26 / "+root+"/deeper/cgroup rw - cgroup2 cgroup rw\n"))
	if got, err := Mountpoint(root); err != nil || got != root+"/deeper/cgroup" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNoMountpoint(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/self/mountinfo", []byte("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"))
	if _, err := Mountpoint(root); err == nil || !strings.Contains(err.Error(), "mount -t cgroup2") {
		t.Errorf("error %v", err)
	}
}

func FuzzScope(f *testing.F) {
	f.Add([]byte("9:name=systemd:/\n0::/user.slice/a b\n"))
	f.Add([]byte("0::"))
	f.Add([]byte("0::/x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		scope, ok := parseScope(text)
		if ok && (scope[0] != '/' || !bytes.Contains(text, []byte("0::"+scope))) {
			t.Errorf("%q from %q", scope, text)
		}
	})
}
