package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// The limits of a job are those of a process that runs, are read again after a while, and stay when none runs.
func TestLimits(t *testing.T) {
	tree := tree{t, t.TempDir()}
	fixture.Write(t, tree.root, "proc/self/mountinfo", []byte("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"))
	fixture.Write(t, tree.root, "sys/dev/block/x", nil)
	if err := os.Symlink("../../devices/sda", filepath.Join(tree.root, "sys/dev/block/8:0")); err != nil {
		t.Fatal(err)
	}
	limit := func(text string) { fixture.Write(t, tree.root, "sys/fs/cgroup/a/io.max", []byte(text)) }
	limit("8:0 rbps=1000 wbps=max riops=max wiops=max\n")
	tree.put(100, 1, 5, 'S', counts{}, counts{})
	tree.put(101, 100, 6, 'S', counts{}, counts{})
	tree.children(100, 101)
	tree.children(101)
	tree.write(100, "cgroup", "0::/other\n")
	tree.write(101, "cgroup", "0::/a\n")
	s := New(tree.root)
	t.Cleanup(s.Close)
	if err := s.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	got := func(want uint64) {
		t.Helper()
		var found uint64
		for _, l := range read(t, s).Jobs[0].Limits {
			found += l.ReadBytes
		}
		if found != want {
			t.Errorf("got a limit of %d bytes/s, want %d", found, want)
		}
	}
	again := func() { s.jobs[0].limitsAt -= limitsInterval }
	got(0)
	tree.write(100, "cgroup", "0::/a\n")
	got(0)
	s.jobs[0].limitsAt -= limitsSoon // of a young job
	got(1000)
	s.jobs[0].begun -= limitsYoung
	limit("8:0 rbps=2000 wbps=max riops=max wiops=max\n")
	got(1000)
	s.jobs[0].limitsAt -= limitsSoon
	edge := &sample.Sample{Edge: true}
	if err := s.Read(edge); err != nil || edge.Jobs[0].Limits[0].ReadBytes != 2000 {
		t.Errorf("at an edge: got %+v, %v; want 2000 bytes/s", edge.Jobs[0].Limits, err)
	}
	tree.end(101)
	tree.end(100)
	again()
	got(2000)
}

// Counts that cannot be read for a while, or restart, are not those of a job that read nothing, or all of it again.
func TestCountsThatVanish(t *testing.T) {
	tree := tree{t, t.TempDir()}
	put := func(file, text string) { fixture.Write(t, tree.root, file, []byte(text)) }
	const vmstat = "nr_inactive_file 100\npgsteal_file 1000\n"
	put("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	put("proc/vmstat", vmstat+"drop_pagecache 7\n")
	put("sys/fs/cgroup/a/memory.max", "1048576\n")
	put("sys/fs/cgroup/a/memory.stat", "workingset_refault_file 500\n")
	tree.put(100, 1, 5, 'S', counts{}, counts{})
	tree.children(100)
	tree.write(100, "cgroup", "0::/a\n")
	s := New(tree.root)
	t.Cleanup(s.Close)
	if err := s.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	page := uint64(os.Getpagesize())
	got := func(pages uint64, cache sample.PageCache) {
		t.Helper()
		s.jobs[0].limitsAt -= limitsInterval
		job := read(t, s).Jobs[0]
		if job.Memory.Refaulted != pages*page || job.PageCache != cache {
			t.Errorf("got %d bytes read again, %+v; want %d pages, %+v", job.Memory.Refaulted, job.PageCache, pages, cache)
		}
	}
	kept := sample.PageCache{Kept: 200 * int64(page), Drops: 1}
	got(0, sample.PageCache{})
	put("proc/vmstat", "nr_inactive_file 100\npgsteal_file 1200\ndrop_pagecache 8\n")
	put("sys/fs/cgroup/a/memory.stat", "workingset_refault_file 510\n")
	got(10, kept)
	put("proc/vmstat", "")
	put("sys/fs/cgroup/a/memory.stat", "")
	got(10, sample.PageCache{})
	put("proc/vmstat", vmstat+"drop_pagecache 1\n")
	put("sys/fs/cgroup/a/memory.stat", "workingset_refault_file 512\n")
	got(12, sample.PageCache{})
}
