package netfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lustre212 = `snapshot_time             1594130021.123456789 secs.nsecs
read_bytes                2000 samples [bytes] 4096 1048576 2097152000
write_bytes               30 samples [bytes] 4096 1048576 31457280
read                      2000 samples [usec] 3 90000 12000000 480000000000
write                     30 samples [usec] 10 8000 45000 99000000
ioctl                     4 samples [reqs]
open                      500 samples [usec] 90 9000 600000 1000000000
close                     500 samples [usec] 40 900 100000 30000000
page_fault                7 samples [usec] 1 5 20 60
getattr                   900 samples [usec] 1 500 45000 4000000
inode_permission          60000 samples [usec] 0 9 9000 30000
`

// Lustre before 2.12 has no times.
const lustre25 = `snapshot_time             1400000000.000001 secs.usecs
dirty_pages_hits          300 samples [regs]
read_bytes                70 samples [bytes] 1 4194304 73400320
write_bytes               3 samples [bytes] 512 4096 8704
open                      12 samples [regs]
close                     11 samples [regs]
`

const ceph510 = `item                               total
------------------------------------------
opened files  / total inodes       1 / 12

item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          400         2500            300             90000           1000
write         10          9000            800             20000           500
metadata      3000        700             90              8000            200

item          total           miss            hit
-------------------------------------------------
d_lease       11              0               100
caps          14              2               9000
`

const ceph517latency = `item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          400         2500            300             90000           1000
write         10          9000            800             20000           500
metadata      3000        700             90              8000            200
`

const ceph517size = `item          total       avg_sz(bytes)   min_sz(bytes)   max_sz(bytes)  total_sz(bytes)
----------------------------------------------------------------------------------------
read          400         4194304         4096            4194304        1677721600
write         10          1048576         4096            1048576        10485760
copyfrom      0           0               0               0              0
`

const nvfsStats = `GDS Version: 1.7.0.149
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.17.5)
Mellanox PeerDirect Supported: True
IO stats: Enabled, peer IO stats: Enabled
Logging level: info

Active Shadow-Buffer (MiB): 128
Active Process: 1
Batches				: n=0 ok=0 err=0 Avg-Submit-Latency(usec)=0
Reads				: n=27758 ok=27750 err=8 readMiB=27758 io_state_err=0
Reads				: Bandwidth(MiB/s)=4300 Avg-Latency(usec)=229
Sparse Reads		        : n=6 io=0 holes=0 pages=0 
Writes				: n=12 ok=12 err=0 writeMiB=12 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Writes				: Bandwidth(MiB/s)=900 Avg-Latency(usec)=900
Mmap				: n=183 ok=183 err=0 munmap=183
Error				: cpu-gpu-pages=0 sg-ext=0 dma-map=0 dma-ref=0
Ops				: Read=0 Write=0 BatchIO=0
`

const nvfsOff = `GDS Version: 1.7.0.149
IO stats: Disabled, peer IO stats: Disabled
Reads				: err=3 io_state_err=0
Writes				: err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Mmap				: n=183 ok=183 err=0 munmap=183
`

const mountinfo = `22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:50 / /data rw,relatime shared:9 - nfs4 server:/export rw,vers=4.2
31 22 0:50 /sub /data2 rw,relatime shared:9 - nfs4 server:/export/sub rw,vers=4.2
32 22 0:51 / /scratch rw - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch rw
33 22 0:52 / /cephfs rw - ceph admin@12345678-aaaa-bbbb-cccc-1234567890ab.fs=/ rw,name=admin
34 22 0:53 / /gcs rw - fuse.gcsfuse bucket rw,user_id=0
35 22 0:54 / /share rw - virtiofs share rw
36 22 0:55 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw
37 22 8:17 / /usb rw - fuseblk /dev/sdb1 rw
38 22 0:56 / /hidden rw - fuse.sshfs other:/ rw
39 22 0:57 / /tmp rw - tmpfs tmpfs rw
`

// machine writes the files of a machine with all kinds of mounts.
func machine(t testing.TB) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"proc/1/mountinfo":                                                                      mountinfo,
		"proc/1/mountstats":                                                                     string(texts(t)["linux-6.1-v4.2-nconnect.txt"]),
		"sys/fs/fuse/connections/53/waiting":                                                    "7\n",
		"sys/fs/fuse/connections/53/max_background":                                             "12\n",
		"sys/fs/fuse/connections/53/congestion_threshold":                                       "9\n",
		"sys/fs/fuse/connections/54/waiting":                                                    "0\n",
		"sys/kernel/debug/lustre/llite/scratch-ffff1/stats":                                     lustre212,
		"sys/kernel/debug/lustre/llite/home-ffff2/stats":                                        lustre25,
		"sys/kernel/debug/ceph/12345678-aaaa-bbbb-cccc-1234567890ab.client4242/metrics/latency": ceph517latency,
		"sys/kernel/debug/ceph/12345678-aaaa-bbbb-cccc-1234567890ab.client4242/metrics/size":    ceph517size,
		"sys/kernel/debug/ceph/99999999-aaaa-bbbb-cccc-1234567890ab.client7/metrics/latency":    "item total avg_lat(us)\nread 1 1\n",
		"proc/driver/nvidia-fs/stats":                                                           nvfsStats,
	} {
		fixture.Write(t, root, path, []byte(text))
	}
	return root
}

func read(t *testing.T, s *Source, edge bool) *sample.Sample {
	t.Helper()
	out := &sample.Sample{Edge: edge}
	if err := s.Read(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRead(t *testing.T) {
	s := New(machine(t))
	defer s.Close()
	got := read(t, s, true)
	by := map[string]sample.MountCounters{}
	var points []string
	for _, c := range got.MountCounters {
		by[c.Point], points = c, append(points, c.Point)
	}
	// One for each file system with counters: not /data2, whose server is that of /data, nor /hidden, which is another
	// user's.
	if want := []string{"/data", "/scratch", "/cephfs", "/gcs", "/share"}; !slices.Equal(points, want) {
		t.Fatalf("got mounts %v, want %v", points, want)
	}
	const ms = time.Millisecond
	nfs := by["/data"]
	if nfs.Source != "server:/export" || nfs.Minor != 50 || nfs.Connections != 4 || !nfs.Session ||
		nfs.ReadSize != 1<<20 ||
		nfs.Read != (sample.MountOperations{Operations: 10010, Bytes: 10485760000, Queue: 12001 * ms, RoundTrip: 150020 * ms,
			Time: 163022 * ms}) || nfs.Other.Operations != 1700 || nfs.Retransmissions != 12 || nfs.Called != 52428800 {
		t.Errorf("NFS: got %+v", nfs)
	}
	lustre := by["/scratch"]
	if lustre.Read != (sample.MountOperations{Operations: 2000, Bytes: 2097152000, Time: 12 * time.Second}) ||
		lustre.Other != (sample.MountOperations{Operations: 61900, Time: 754 * ms}) ||
		lustre.Has != sample.HasMountOperations|sample.HasMountTime|sample.HasMountCalled {
		t.Errorf("Lustre: got %+v", lustre)
	}
	ceph := by["/cephfs"]
	if ceph.Read != (sample.MountOperations{Operations: 400, Bytes: 1677721600, Time: time.Second}) ||
		ceph.Other != (sample.MountOperations{Operations: 3000, Time: 2100 * ms}) || ceph.Has&sample.HasMountRequests == 0 {
		t.Errorf("Ceph: got %+v", ceph)
	}
	fuse := by["/gcs"]
	if fuse.Waiting != 7 || fuse.MaxBackground != 12 || fuse.Congestion != 9 ||
		fuse.Has != sample.HasMountWaiting|sample.HasMountLimits {
		t.Errorf("FUSE: got %+v", fuse)
	}
	if virtio := by["/share"]; virtio.Type != "virtiofs" || virtio.Has != sample.HasMountWaiting {
		t.Errorf("virtiofs: got %+v", virtio)
	}
	want := sample.GPUDirect{
		Read:  sample.GPUDirectTransfers{Operations: 27750, Bytes: 27758 << 20, Errors: 8},
		Write: sample.GPUDirectTransfers{Operations: 12, Bytes: 12 << 20}, HasTransfer: true,
	}
	if got.GPUDirect == nil || *got.GPUDirect != want {
		t.Errorf("GPUDirect: got %+v, want %+v", got.GPUDirect, want)
	}
}

// The counters of a mount of NFS began when it was mounted, those of others when they were first seen. A mount that is
// mounted again counts from then on, also if that took less than a second.
func TestBegan(t *testing.T) {
	root := machine(t)
	before := time.Now()
	s := New(root)
	defer s.Close()
	began := func() map[string]sample.Stamp {
		by := map[string]sample.Stamp{}
		for _, c := range read(t, s, true).MountCounters {
			by[c.Point] = c.Began
		}
		return by
	}
	const age = 86423 * time.Second
	near := func(what string, got sample.Stamp, want time.Time) {
		t.Helper()
		if off := got.Wall.Sub(want).Abs(); off > 10*time.Second {
			t.Errorf("%s: its counters began at %v, want %v", what, got.Wall, want)
		}
	}
	first := began()
	near("NFS", first["/data"], before.Add(-age))
	near("FUSE", first["/gcs"], before)
	near("Lustre", first["/scratch"], before)
	time.Sleep(20 * time.Millisecond)
	if second := began(); !maps.Equal(first, second) {
		t.Errorf("got %v at the next reading, want %v as before", second, first)
	}
	text := string(texts(t)["linux-6.1-v4.2-nconnect.txt"])
	text = strings.Replace(text, "age:\t86423", "age:\t3600", 1)
	text = strings.NewReplacer("READ: 10000", "READ: 12", "READ_PLUS: 10 ", "READ_PLUS: 0 ").Replace(text)
	fixture.Write(t, root, "proc/1/mountstats", []byte(text))
	fixture.Write(t, root, "sys/kernel/debug/lustre/llite/scratch-ffff1/stats", []byte(lustre25))
	third := began()
	near("NFS that was mounted again", third["/data"], before.Add(-time.Hour))
	if got, want := third["/scratch"], first["/scratch"]; got.Mono <= want.Mono {
		t.Errorf("Lustre that was mounted again: its counters began at %v, want later than %v", got, want)
	}
	if third["/gcs"] != first["/gcs"] {
		t.Errorf("FUSE: its counters began at %v, want %v as before", third["/gcs"], first["/gcs"])
	}
}

func TestOlderTexts(t *testing.T) {
	var c sample.MountCounters
	if !parseLustre([]byte(lustre25), &c) || c.Has&sample.HasMountTime != 0 || c.Read.Operations != 70 ||
		c.Read.Bytes != 73400320 || c.Other.Operations != 23 {
		t.Errorf("Lustre 2.5: got %+v, want 70 reads without a time and 23 others", c)
	}
	c = sample.MountCounters{}
	if !parseCeph([]byte(ceph510), &c) || c.Read.Operations != 400 || c.Read.Time != time.Second || c.Read.Bytes != 0 {
		t.Errorf("Ceph of Linux 5.10: got %+v, want 400 reads of 2.5 ms", c)
	}
	d, ok := parseDirect([]byte(nvfsOff))
	if want := (sample.GPUDirect{Read: sample.GPUDirectTransfers{Errors: 3}}); !ok || d != want {
		t.Errorf("nvidia-fs without rw_stats_enabled: got %+v, want %+v", d, want)
	}
	if _, ok := parseDirect([]byte("nothing\n")); ok {
		t.Error("another text: got counters, want none")
	}
}

// The mean of Ceph is rounded, so that the product may fall. The time does not.
func TestCephTimeNeverFalls(t *testing.T) {
	var c sample.MountCounters
	parseCeph([]byte("item total avg_lat(us)\nread 1000 11\n"), &c)
	parseCeph([]byte("item total avg_lat(us)\nread 1001 10\n"), &c)
	if c.Read.Operations != 1001 || c.Read.Time != 11*time.Millisecond {
		t.Errorf("got %+v, want 1001 reads and still 11 ms", c.Read)
	}
}

// Without such mounts there is no reading, and no error: also on a machine without any of the files.
func TestNoMounts(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/1/mountinfo", []byte("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"))
	fixture.Write(t, root, "proc/1/mountstats", texts(t)["none.txt"])
	for _, root := range []string{root, t.TempDir()} {
		s := New(root)
		if got := read(t, s, true); len(got.MountCounters) > 0 || got.MountsRead || got.GPUDirect != nil {
			t.Errorf("%s: got %+v, want nothing", root, got)
		}
		s.Close()
	}
}

// Files below debugfs need root. Without them, the others are read and nothing is reported.
func TestWithoutDebugfs(t *testing.T) {
	root := machine(t)
	if err := os.RemoveAll(filepath.Join(root, "sys/kernel/debug")); err != nil {
		t.Fatal(err)
	}
	s := New(root)
	defer s.Close()
	if got := read(t, s, true); len(got.MountCounters) != 3 {
		t.Errorf("got %+v, want NFS, FUSE and virtiofs", got.MountCounters)
	}
}

// At ordinary ticks it reads once a second.
func TestOncePerSecond(t *testing.T) {
	s := New(machine(t))
	defer s.Close()
	var readings int
	began := time.Now()
	for time.Since(began) < 1100*time.Millisecond {
		if len(read(t, s, false).MountCounters) > 0 {
			readings++
		}
		time.Sleep(10 * time.Millisecond)
	}
	if readings < 2 || readings > 4 { // the first one, and one for each second that begins
		t.Errorf("got %d readings in %v, want one a second", readings, time.Since(began))
	}
}

// A mount of NFS that is listed and has no counters is one of the problems.
func TestNFSWithoutCounters(t *testing.T) {
	root := machine(t)
	fixture.Write(t, root, "proc/1/mountstats", texts(t)["none.txt"])
	s := New(root)
	defer s.Close()
	out := &sample.Sample{Edge: true}
	if err := s.Read(out); err == nil || len(out.MountCounters) != 4 {
		t.Errorf("got %v and %d mounts, want an error and the 4 others", err, len(out.MountCounters))
	}
}

func TestTwoLustreMountsOfOneNameAreLeftOut(t *testing.T) {
	root := machine(t)
	fixture.Write(t, root, "sys/kernel/debug/lustre/llite/scratch-ffff9/stats", []byte(lustre212))
	s := New(root)
	defer s.Close()
	for _, c := range read(t, s, true).MountCounters {
		if c.Type == "lustre" {
			t.Errorf("got %+v, want none: it is not known which of the two folders is its own", c)
		}
	}
}
