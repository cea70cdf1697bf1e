package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// machine writes files of a machine with the disks sda and loop1.
func limitMachine(t testing.TB, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		fixture.Write(t, root, name, []byte(text))
	}
	for number, name := range map[string]string{"8:0": "sda", "7:1": "loop1"} {
		fixture.Write(t, root, "sys/devices/block/"+name+"/size", nil)
		fixture.Write(t, root, "sys/dev/block/x", nil)
		if err := os.Symlink("../../devices/block/"+name, filepath.Join(root, "sys/dev/block", number)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	unified = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	hybrid  = "31 1 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"32 1 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n" +
		"33 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
)

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []sample.Limit
	}{
		"cgroup v2, with those above": {map[string]string{
			"proc/self/mountinfo":                unified,
			"proc/7/cgroup":                      "0::/jobs/a/worker\n",
			"sys/fs/cgroup/jobs/a/worker/io.max": "8:0 rbps=max wbps=max riops=max wiops=120\n",
			"sys/fs/cgroup/jobs/a/io.max":        "8:0 rbps=104857600 wbps=max riops=max wiops=max\n7:1 rbps=max wbps=max riops=400 wiops=max\n",
			"sys/fs/cgroup/jobs/io.max":          "9:9 rbps=5 wbps=max riops=max wiops=max\n8:0 rbps=max wbps=max riops=max wiops=max\n",
			"sys/fs/cgroup/other/io.max":         "8:0 rbps=1 wbps=1 riops=1 wiops=1\n",
		}, []sample.Limit{
			{Device: "sda", Cgroup: "/jobs/a/worker", Control: sample.IOMax, Writes: 120},
			{Device: "sda", Cgroup: "/jobs/a", Control: sample.IOMax, ReadBytes: 100 << 20},
			{Device: "loop1", Cgroup: "/jobs/a", Control: sample.IOMax, Reads: 400},
		}},
		"cgroup v1, without those above": {map[string]string{
			"proc/self/mountinfo": hybrid,
			"proc/7/cgroup":       "7:blkio:/jobs/a\n3:cpu,cpuacct:/\n0::/\n",
			"sys/fs/cgroup/blkio/jobs/a/blkio.throttle.read_bps_device":   "8:0 104857600\n7:1 5\n",
			"sys/fs/cgroup/blkio/jobs/a/blkio.throttle.read_iops_device":  "7:1 400\n",
			"sys/fs/cgroup/blkio/jobs/a/blkio.throttle.write_bps_device":  "",
			"sys/fs/cgroup/blkio/jobs/a/blkio.throttle.write_iops_device": "8:0 9\n",
			"sys/fs/cgroup/blkio/jobs/blkio.throttle.read_bps_device":     "8:0 1\n",
			"sys/fs/cgroup/unified/cgroup.procs":                          "",
		}, []sample.Limit{
			{Device: "sda", Cgroup: "/jobs/a", Control: sample.BlkioThrottle, ReadBytes: 100 << 20, Writes: 9},
			{Device: "loop1", Cgroup: "/jobs/a", Control: sample.BlkioThrottle, ReadBytes: 5, Reads: 400},
		}},
		"cgroup v1 in a container": {map[string]string{
			"proc/self/mountinfo": "32 1 0:28 /docker/f00 /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
			"proc/7/cgroup":       "7:blkio:/docker/f00\n",
			"sys/fs/cgroup/blkio/blkio.throttle.read_bps_device": "8:0 77\n",
		}, []sample.Limit{{Device: "sda", Cgroup: "/docker/f00", Control: sample.BlkioThrottle, ReadBytes: 77}}},
		"a path outside this namespace": {map[string]string{
			"proc/self/mountinfo":  unified,
			"proc/7/cgroup":        "0::/../b\n",
			"sys/fs/cgroup/io.max": "8:0 rbps=1 wbps=max riops=max wiops=max\n",
		}, nil},
		"without a process": {map[string]string{"proc/self/mountinfo": unified}, nil},
		"nonsense": {map[string]string{
			"proc/self/mountinfo": unified, "proc/7/cgroup": "0::/a\nx\n::\n",
			"sys/fs/cgroup/a/io.max": "8:0 rbps=x =5 wiops\n8:0\n../../x rbps=1\n",
		}, nil},
	} {
		if got := NewLimits(limitMachine(t, c.files)).Of(7); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func FuzzLimits(f *testing.F) {
	root := limitMachine(f, map[string]string{"proc/self/mountinfo": unified})
	limits := NewLimits(root)
	f.Add("8:0 rbps=1 wbps=max riops=max wiops=max\n", "8:0 1\n")
	f.Add("8:0 rbps", "8:0 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, second, first string) {
		fixture.Write(t, root, "blkio.throttle.read_bps_device", []byte(first))
		for _, l := range append(limits.parseMax(second, "/a"), limits.throttles(root, "/a")...) {
			if l.Device == "" || l.Empty() {
				t.Errorf("got %+v, want a device and a limit", l)
			}
		}
	})
}

func BenchmarkLimits(b *testing.B) {
	limits := NewLimits("")
	for b.Loop() {
		limits.Of(os.Getpid())
	}
}

// The memory of a process is limited by the first cgroup above it that has a limit, of either version.
func TestMemory(t *testing.T) {
	page := uint64(os.Getpagesize())
	memoryV1 := hybrid + "34 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  sample.MemoryLimit
	}{
		"cgroup v2, by one above": {map[string]string{
			"proc/self/mountinfo":                    unified,
			"proc/7/cgroup":                          "0::/jobs/a/worker\n",
			"sys/fs/cgroup/jobs/a/worker/memory.max": "max\n",
			"sys/fs/cgroup/jobs/a/memory.max":        "2147483648\n",
			"sys/fs/cgroup/jobs/a/memory.high":       "1073741824\n",
			"sys/fs/cgroup/jobs/a/memory.current":    "1073000000\n",
			"sys/fs/cgroup/jobs/a/memory.stat":       "file 4096\nworkingset_refault_anon 3\nworkingset_refault_file 250\n",
		}, sample.MemoryLimit{Cgroup: "/jobs/a", Limit: 1 << 30, Used: 1073000000, Refaulted: 250 * page}},
		"cgroup v2, Linux 5.8": {map[string]string{
			"proc/self/mountinfo":            unified,
			"proc/7/cgroup":                  "0::/jobs\n",
			"sys/fs/cgroup/jobs/memory.max":  "4096\n",
			"sys/fs/cgroup/jobs/memory.stat": "workingset_refault 2\n",
		}, sample.MemoryLimit{Cgroup: "/jobs", Limit: 4096, Refaulted: 2 * page}},
		"cgroup v1, with what those below read again": {map[string]string{
			"proc/self/mountinfo":                               memoryV1,
			"proc/7/cgroup":                                     "9:memory:/jobs/a\n0::/\n",
			"sys/fs/cgroup/unified/cgroup.procs":                "",
			"sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes":   "536870912\n",
			"sys/fs/cgroup/memory/jobs/memory.usage_in_bytes":   "536000000\n",
			"sys/fs/cgroup/memory/jobs/memory.stat":             "workingset_refault_file 1\ntotal_workingset_refault_file 7\n",
		}, sample.MemoryLimit{Cgroup: "/jobs", Limit: 512 << 20, Used: 536000000, Refaulted: 7 * page}},
		"none": {map[string]string{
			"proc/self/mountinfo":           unified,
			"proc/7/cgroup":                 "0::/jobs\n",
			"sys/fs/cgroup/jobs/memory.max": "max\n",
		}, sample.MemoryLimit{}},
	} {
		if got, _ := NewLimits(limitMachine(t, c.files)).Memory(7); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
