package locate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/source/process"
)

// Whatever a span says, Find gives no process that is not there, and no path that is not a process's own.
func FuzzFind(f *testing.F) {
	f.Add("", "", "", "", 0)
	f.Add("gpu1", ourID, "node-7", hereID, 7)
	f.Add("gpu1", "", "", "", 1700)
	f.Add("", "", "", hereID[:12], 1)
	f.Add(hereID[:12], otherID, "node-8", "", 7)
	f.Add(hereID, "", "", "", 0)
	f.Add("../../etc", "\x00", "a\nb", "../"+hereID, -1)
	f.Add("", "", "", strings.Repeat("a", 1<<20), 1<<62)
	f.Add(strings.Repeat("-", 1<<20), strings.Repeat("-", 1<<20), "", hereID, 1<<22)
	var locators []*Locator
	var roots []string
	for _, name := range []string{"docker_v2", "containerd_hybrid", "nested", "host_proc"} {
		root := machineOf(f, name)
		for _, assume := range []bool{false, true} {
			roots = append(roots, root)
			locators = append(locators, New(root, "node-7", assume))
		}
	}
	f.Fuzz(func(t *testing.T, name, id, node, container string, pid int) {
		w := Who{HostName: name, HostID: id, NodeName: node, ContainerID: container, PID: pid}
		for i, l := range locators {
			p, local := l.Find(w)
			if again, still := l.Find(w); again != p || still != local {
				t.Errorf("%+v, %v, and then %+v, %v", p, local, again, still)
			}
			if !local && p != (Place{}) || !local && i%2 == 1 {
				t.Errorf("of another host, at %+v", p)
			}
			check(t, roots[i], p)
		}
	})
}

func check(t *testing.T, root string, p Place) {
	t.Helper()
	if p.PID == 0 {
		if p != (Place{}) {
			t.Errorf("got %+v, want no place", p)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(root, "proc", fmt.Sprint(p.PID), "cgroup"))
	if err != nil {
		t.Errorf("the cgroup of %+v: got %v, want a readable file", p, err)
	}
	if !bytes.Contains(text, []byte("0::"+p.Cgroup)) && p.Cgroup != "" || p.Own != (p.Cgroup != "") {
		t.Errorf("got %+v, want a cgroup in %q", p, text)
	}
}

// Parsing ends for any text, and the results are parts of the text.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("0::/system.slice/docker-"+hereID+".scope/x\n"), "Tgid:\t5\nNSpid:\t5\t1\nVmSize:\t1 kB\n")
	f.Add([]byte("9:name=systemd:/a:cri-containerd:"+hereID+"\n0::/../"+hereID+"\n"), "5 (a) b) S 1 2 3")
	f.Add([]byte("1::/docker/"+hereID+"/"+awayID), "NSpid:\n")
	f.Add([]byte("0::/..0/"+hereID+"\n"), "")
	f.Add([]byte("0::/libpod-conmon-"+hereID+"\n"), "Tgid:\t99999999999999999999\n")
	f.Fuzz(func(t *testing.T, cgroup []byte, text string) {
		eachContainer(cgroup, "", func(m membership) bool {
			if !mayBeID(string(m.id)) || len(m.id) != idDigits || m.path[0] != '/' || !bytes.Contains(cgroup, m.path) {
				t.Errorf("got %+v, want an ID and a path in %q", m, cgroup)
			}
			for _, own := range []string{"", "/", "/a/b"} {
				path, ok := within(cgroup, own, string(m.id))
				if !ok || path != "" && (filepath.Clean(path) != path || !strings.Contains(path, string(m.id))) {
					t.Errorf("got %q, %v, want a clean path with %s, or none", path, ok, m.id)
				}
			}
			return true
		})
		s, ok := parseStatus([]byte(text))
		if ok && (s.depth < 0 || min(s.group, s.inner) <= 0 || max(s.group, s.inner) > maxPID) {
			t.Errorf("got %+v, want numbers within their bounds", s)
		}
		process.ParseStat([]byte(text))
	})
}
