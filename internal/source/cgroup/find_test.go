package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// groupsOf makes a machine with cgroups. Each has the processes after the name.
func groupsOf(t testing.TB, groups ...string) (root string) {
	t.Helper()
	root = limitMachine(t, map[string]string{"proc/self/mountinfo": unified})
	for _, g := range groups {
		name, procs, _ := strings.Cut(g, " ")
		dir := "sys/fs/cgroup" + name
		fixture.Write(t, root, dir+"/cgroup.procs", []byte(strings.ReplaceAll(procs, " ", "\n")))
		fixture.Write(t, root, dir+"/cgroup.events", []byte("populated 0\nfrozen 0\n"))
		if procs == "" {
			continue
		}
		for above := name; above != "/"; above = filepath.Dir(above) {
			fixture.Write(t, root, "sys/fs/cgroup"+above+"/cgroup.events", []byte("populated 1\nfrozen 0\n"))
		}
	}
	return root
}

// search returns a search with patterns.
func searchIn(t testing.TB, root string, patterns ...string) *Search {
	t.Helper()
	p, err := ParsePatterns(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return NewSearch(root, p)
}

func pathsOf(all []Group) (paths []string) {
	for _, g := range all {
		paths = append(paths, g.Path)
	}
	return paths
}

const (
	podSlice  = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"
	podSlice2 = "/kubepods.slice/kubepods-pod2.slice"
	slurmd    = "/system.slice/slurmstepd.scope"
)

func TestSearch(t *testing.T) {
	root := groupsOf(t, "/init.scope 1",
		"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice", podSlice, podSlice+"/cri-containerd-a.scope 11 12",
		podSlice+"/cri-containerd-b.scope", podSlice+"/cri-containerd-b.scope/inner 13", podSlice2,
		podSlice2+"/crio-c.scope 14",
		podSlice2+"/crio-d.scope", "/system.slice", "/system.slice/train1.service 20", "/system.slice/train2.service",
		"/system.slice/web.service 21", slurmd, slurmd+"/system 30", slurmd+"/job_1", slurmd+"/job_1/step_0",
		slurmd+"/job_1/step_0/user", slurmd+"/job_1/step_0/user/task_0 31", slurmd+"/job_1/step_batch",
		slurmd+"/job_1/step_batch/slurm 32", slurmd+"/job_2", slurmd+"/job_2/step_0")
	a, inner, c := podSlice+"/cri-containerd-a.scope", podSlice+"/cri-containerd-b.scope/inner", podSlice2+"/crio-c.scope"
	for _, test := range []struct {
		patterns, want []string
	}{
		{[]string{"/kubepods.slice/**"}, []string{a, inner, c}},
		{[]string{"kubepods.slice/**/*-pod*.slice/"}, []string{podSlice, podSlice2}},
		{[]string{"/kubepods.slice/**/cri-containerd-*.scope"}, []string{a, podSlice + "/cri-containerd-b.scope"}},
		{[]string{"/kubepods.slice"}, []string{"/kubepods.slice"}},
		{[]string{"/system.slice/train*.service"}, []string{"/system.slice/train1.service"}},
		{[]string{"/system.slice/slurmstepd.scope/job_*/step_[0-9]*"}, []string{slurmd + "/job_1/step_0"}},
		{[]string{"/**/job_*", "/**/step_*"}, []string{slurmd + "/job_1"}}, // the topmost
		{[]string{"/system.slice/slurmstepd.scope/**"}, []string{slurmd + "/job_1/step_0/user/task_0",
			slurmd + "/job_1/step_batch/slurm", slurmd + "/system"}},
		{[]string{"/**/task_0", "/**/web.service/**", "/init.scope"}, []string{"/init.scope",
			slurmd + "/job_1/step_0/user/task_0"}},
		{[]string{"**"}, []string{"/init.scope", a, inner, c, slurmd + "/job_1/step_0/user/task_0",
			slurmd + "/job_1/step_batch/slurm", slurmd + "/system", "/system.slice/train1.service",
			"/system.slice/web.service"}},
		{[]string{"/*"}, []string{"/init.scope", "/kubepods.slice", "/system.slice"}},
		{[]string{"/none/**", "/*/*/*/*/*/*/*"}, nil},
		{nil, nil},
	} {
		s := searchIn(t, root, test.patterns...)
		found, err := s.All()
		if got := pathsOf(found); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, %v\nwant %q", test.patterns, got, err, test.want)
		}
		for _, g := range found {
			if again, ok := s.Of(g.Path); !ok || again != g || !s.Same(g) || g.Number == 0 {
				t.Errorf("%q: %s itself: got %+v, want %+v", test.patterns, g.Path, again, g)
			}
			if of, ok := s.Of(g.Path + "/x/y"); !ok || of != g {
				t.Errorf("%q: below %s: got %+v, want %+v", test.patterns, g.Path, of, g)
			}
		}
		if g, ok := s.Of("/other/x"); ok || g != (Group{}) {
			t.Errorf("%q: another one: got %+v, want none", test.patterns, g)
		}
	}
	s := searchIn(t, root, "/*")
	for _, scope := range []string{"", "/", "/..", "/../init.scope"} {
		if g, ok := s.Of(scope); ok {
			t.Errorf("%q: got %+v, want none", scope, g)
		}
	}
}

// A cgroup that was made again is another one.
func TestSameGroup(t *testing.T) {
	root := groupsOf(t, "/a 1")
	s := searchIn(t, root, "/a")
	found, _ := s.All()
	if len(found) != 1 || !s.Same(found[0]) {
		t.Fatalf("got %+v, want /a", found)
	}
	dir := root + "/sys/fs/cgroup/a"
	if err := os.Rename(dir, dir+"-before"); err != nil { // keeps its number from being given again
		t.Fatal(err)
	}
	if s.Same(found[0]) {
		t.Error("without the folder: got the same, want none")
	}
	fixture.Write(t, root, "sys/fs/cgroup/a/cgroup.procs", []byte("1\n"))
	if s.Same(found[0]) {
		t.Error("made again: got the same, want another one")
	}
}

func TestHiddenProcesses(t *testing.T) {
	root := groupsOf(t, "/a 0 0", "/b", "/b/c 0", "/b/d 5", "/e")
	for path, want := range map[string]bool{
		"/a": true, "/b": false, "/b/c": true, "/e": false, "/none": false, "/..": false,
	} {
		if got := searchIn(t, root).Hidden(Group{Path: path}); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestSearchOfPatternsIsBounded(t *testing.T) {
	var names []string
	for i := range maxFound + 5 {
		names = append(names, fmt.Sprintf("/g%03d %d", i, i+1))
	}
	found, err := searchIn(t, groupsOf(t, names...), "/*").All()
	if len(found) != maxFound || !errors.Is(err, ErrTooMany) {
		t.Errorf("got %d, %v, want %d and %v", len(found), err, maxFound, ErrTooMany)
	}
	root := groupsOf(t)
	for i := range maxSearched + 5 {
		if err := os.MkdirAll(fmt.Sprintf("%s/g%d", root+"/sys/fs/cgroup", i), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := searchIn(t, root, "/**/none").All(); len(found) != 0 || !errors.Is(err, ErrTooMany) {
		t.Errorf("got %d, %v, want 0 and %v", len(found), err, ErrTooMany)
	}
	deep := "/" + strings.Repeat("d/", maxLevels+4) + "end"
	if found, err := searchIn(t, groupsOf(t, deep+" 1"), "/**/end").All(); len(found) != 0 || err != nil {
		t.Errorf("too deep: got %v, %v, want none", found, err)
	}
	if _, err := searchIn(t, t.TempDir(), "/a").All(); err == nil {
		t.Error("without cgroup v2: got no error, want one")
	}
}

func TestParsePatterns(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "a level is empty",
		"/":                        "a level is empty",
		"//a":                      "a level is empty",
		"/a//b":                    "a level is empty",
		"/a/../b":                  "relative",
		"./a":                      "relative",
		"/a**":                     "level of its own",
		"/a/[b":                    "brackets",
		`/a\`:                      "brackets",
		strings.Repeat("/a", 40):   "levels",
		strings.Repeat("a", 2000):  "bytes",
		"/[a-":                     "brackets",
		"/system.slice/[]a]/x*.[y": "brackets",
	} {
		_, err := ParsePatterns([]string{"/fine", text})
		if err == nil || !strings.HasPrefix(err.Error(), "[1]: ") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: got %v, want an error of [1] with %q", text, err, want)
		}
	}
	if _, err := ParsePatterns(slices.Repeat([]string{"/a"}, maxPatterns+1)); err == nil {
		t.Error("too many: got no error, want one")
	}
}

// A pattern finds the same from the top of the tree and for one path.
func FuzzPatterns(f *testing.F) {
	f.Add("/a/**/b*", "/a/x/b1")
	f.Add("/**/**/[a-c]", "/a/b/c/d")
	f.Add("**", "/a")
	f.Add("/**/a/**/b/c", "/a/b/b/a/b/c/b/c/d")
	f.Fuzz(func(t *testing.T, pattern, scope string) {
		p, err := ParsePatterns([]string{pattern})
		if err != nil {
			return
		}
		names, open := strings.Split(strings.TrimPrefix(scope, "/"), "/"), true
		for n := range names {
			m := p.match(names[:n+1])
			if !open && (m.exact || m.deep || m.below) {
				t.Fatalf("%q matches %q below a cgroup that it matches nothing below", pattern, scope)
			}
			open = m.below
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	s := searchIn(b, "", "/**")
	for b.Loop() {
		_, _ = s.All()
	}
}
