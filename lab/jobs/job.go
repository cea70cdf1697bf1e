//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// job is a program with its data, its storage and what runs next to it.
type job struct {
	Name    string     `json:"name"`
	Program string     `json:"program"` // in programs; a file in C or a folder with Go is compiled
	Args    []string   `json:"args"`    // {disk} and {memory} are folders
	Data    []dataSpec `json:"data"`
	Disk    diskSpec   `json:"disk"`
	GPUs    int        `json:"gpus,omitempty"`
	Driver  driver     `json:"driver"`
	User    string     `json:"user,omitempty"`   // "" for root
	Bash    string     `json:"bash,omitempty"`   // what bash runs in place of the program: PYTHON PROGRAM are its words
	Input   string     `json:"input,omitempty"`  // a command whose output the program reads, within bash -c
	Fio     string     `json:"fio,omitempty"`    // fio in parallel, on the "same" disk or on "another"
	Peer    []string   `json:"peer,omitempty"`   // arguments of the same program, which runs outside of the job
	Server  []string   `json:"server,omitempty"` // arguments of a server, which runs outside of the job
	Serves  string     `json:"serves,omitempty"` // it, in programs; "" for objects
	Second  *job       `json:"second,omitempty"` // in parallel, on the same accelerator
}

// dataSpec is what programs/data.py writes.
type dataSpec struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Count int    `json:"count"`
	Size  int    `json:"size"` // pixels of the side of an image, or bytes of a row or tensor
}

// driver is how the emulated driver samples (testdata/fakenvml/README.md), in microseconds.
type driver struct {
	Period int `json:"period_us"`
	Report int `json:"report_us,omitempty"`
	Late   int `json:"late_us,omitempty"`
}

// chance draws the numbers of a job from its seed.
type chance struct{ *rand.Rand }

// between draws a whole number of low to high.
func (c chance) between(low, high int) int { return low + c.IntN(high-low+1) }

// seconds draws a time of low to high milliseconds, as an argument.
func (c chance) seconds(low, high int) string {
	return strconv.FormatFloat(float64(c.between(low, high))/1000, 'f', 3, 64)
}

// number draws a whole number as an argument.
func (c chance) number(low, high int) string { return strconv.Itoa(c.between(low, high)) }

// disk draws slow storage that serves so many reads a second.
func (c chance) disk(low, high int) diskSpec {
	kinds := []string{stacked, limited, string(slowdisk.Throttled)}
	return diskSpec{Kind: kinds[c.IntN(len(kinds))], IOPS: c.between(low, high)}
}

// bandwidth draws slow storage that serves so many MiB a second.
func (c chance) bandwidth(low, high int) diskSpec {
	kinds := []string{stacked, limited, string(slowdisk.Throttled), string(slowdisk.SATA)}
	return diskSpec{Kind: kinds[c.IntN(len(kinds))], Bytes: int64(c.between(low, high)) << 20}
}

// driver draws a driver that is as punctual as the fast ones are.
func (c chance) driver() driver { return driver{Period: []int{20000, 166666}[c.IntN(2)]} }

// entry makes a job of a name; short ones are those of -short.
type entry struct {
	name  string
	short bool
	make  func(c chance) job
}

// made returns the job of an entry and a seed.
func (e entry) made(seed uint64) job {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.name))
	j := e.make(chance{rand.New(rand.NewPCG(seed, h.Sum64()))})
	j.Name = e.name
	return j
}

// images is a job of programs/images.py.
func images(c chance, workers int, accelerator string, more ...string) job {
	j := job{
		Program: "images.py", Disk: c.disk(110, 190), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"images", "{disk}/images", c.between(480, 640), c.between(192, 288)}},
		Args: append([]string{"{disk}/images", "--workers", strconv.Itoa(workers), "--accelerator", accelerator,
			"--batch", c.number(8, 16), "--size", c.number(96, 160), "--step", c.seconds(25, 70)}, more...),
	}
	if accelerator == "cpu" {
		j.GPUs = 0
	}
	return j
}

// late is images in one thread with a driver that reports once a second, and so late.
func late(period, us int) func(chance) job {
	return func(c chance) job {
		j := images(c, 0, "sleep")
		j.Driver = driver{Period: period, Report: 1000000, Late: us}
		return j
	}
}

// arrays is a job of programs/arrays.py.
func arrays(c chance, kind string) job {
	disk := c.disk(250, 450)
	if kind == "npy" { // the kernel reads ahead and around
		disk = c.bandwidth(8, 14)
	}
	return job{
		Program: "arrays.py", Disk: disk, GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{kind, "{disk}/rows." + kind, c.between(1100, 1500), c.between(6, 12) * 4096}},
		Args: []string{"{disk}/rows." + kind, "--batch", c.number(12, 24), "--work", c.number(1, 6),
			"--step", c.seconds(15, 40)},
	}
}

// load is a job of programs/load.py.
func load(c chance, kind string) job {
	return job{
		Program: "load.py", Disk: c.bandwidth(60, 110),
		Data: []dataSpec{{kind, "{disk}/model." + kind, c.between(24, 32), c.between(8, 12) << 20}},
		Args: []string{"{disk}/model." + kind},
	}
}

// entries are all jobs.
func entries() []entry {
	return []entry{
		{"images-0-sleep", true, func(c chance) job { return images(c, 0, "sleep") }},
		{"images-0-spin", false, func(c chance) job { return images(c, 0, "spin") }},
		{"images-0-async", false, func(c chance) job { return images(c, 0, "async") }},
		{"images-2-sleep", true, func(c chance) job { return images(c, 2, "sleep") }},
		{"images-2-spin", false, func(c chance) job { return images(c, 2, "spin") }},
		{"images-2-async", false, func(c chance) job { return images(c, 2, "async") }},
		{"images-6-sleep", false, func(c chance) job { return images(c, 6, "sleep") }},
		{"images-6-spin", false, func(c chance) job { return images(c, 6, "spin") }},
		{"images-hidden", false, hidden},
		{"queue-0", false, func(c chance) job { return queue(c, 0) }},
		{"queue-2", false, func(c chance) job { return queue(c, 2) }},
		{"queue-6", false, func(c chance) job { return queue(c, 6) }},
		{"driver-20-late1", false, late(20000, 1000000)},
		{"driver-167-late1", false, late(166666, 1000000)},
		{"driver-20-late3", false, late(20000, 3000000)},
		{"driver-167-late3", false, late(166666, 3000000)},
		{"cpu-0", false, func(c chance) job { return images(c, 0, "cpu", "--width", c.number(8, 32)) }},
		{"cpu-2", false, func(c chance) job { return images(c, 2, "cpu", "--width", c.number(8, 32)) }},
		{"imagenet", false, imagenet},
		{"memmap", true, func(c chance) job { return arrays(c, "npy") }},
		{"memmap-spin", false, func(c chance) job { j := arrays(c, "npy"); j.Args = append(j.Args, "--spins"); return j }},
		{"memmap-raw", false, raw},
		{"hdf5", false, func(c chance) job { return arrays(c, "h5") }},
		{"shards-1", false, func(c chance) job { return shards(c, 1) }},
		{"shards-2", false, func(c chance) job { return shards(c, 2) }},
		{"load-torch", false, func(c chance) job { return load(c, "pt") }},
		{"load-safetensors", true, func(c chance) job { return load(c, "safetensors") }},
		{"load-gguf", false, func(c chance) job { return load(c, "gguf") }},
		{"load-gpu", false, loadToGPU},
		{"checkpoints", false, checkpoints},
		{"fio-same", false, func(c chance) job { j := images(c, c.between(0, 2), "sleep"); j.Fio = "same"; return j }},
		{"fio-other", false, fioOther},
		{"ranks", false, ranks},
		{"peer", false, peer},
		{"plain-images", false, func(c chance) job { return plain(images(c, c.between(0, 2), "sleep")) }},
		{"plain-memmap", false, func(c chance) job { return plain(arrays(c, "npy")) }},
		{"shared-gpu", false, sharedGPU},
		{"pool", false, pool},
		{"bash", false, func(c chance) job {
			j := images(c, c.between(0, 2), "sleep")
			j.Bash = "PYTHON PROGRAM; echo done"
			return j
		}},
		{"network-images", false, func(c chance) job { return network(c, images(c, c.between(0, 2), "sleep"), 12, 25) }},
		{"network-memmap", false, func(c chance) job { return network(c, arrays(c, "npy"), 4, 10) }},
		{"raid", false, raid},
		{"tables", false, tables},
		{"database", false, database},
		{"stream", false, stream},
		{"pickles", false, pickles},
		{"asynchronous", false, asynchronous},
		{"small", false, small},
		{"video", false, video},
		{"imports", false, imports},
		{"prepare", false, prepare},
		{"background", false, background},
		{"gloo", false, gloo},
		{"direct", false, func(c chance) job { return blocks(c, c.between(2, 6), true) }},
		{"uring", false, func(c chance) job { return blocks(c, 0, false) }},
		{"digest", false, digest},
		{"java", false, func(c chance) job { return java(c, c.between(2, 6)) }},
		{"java-1000", false, func(c chance) job { return java(c, 1000) }},
		{"pool-64", false, func(c chance) job { return widePool(c, 64) }},
		{"short-0", false, func(c chance) job { return shortly(c, images(c, 0, "sleep")) }},
		{"short-2", false, func(c chance) job { return shortly(c, images(c, 2, "sleep")) }},
		{"short-cpu", false, func(c chance) job { return shortly(c, images(c, 0, "cpu")) }},
		{"short-memmap", false, func(c chance) job { return shortly(c, arrays(c, "npy")) }},
		{"launcher-sleep", true, func(c chance) job { return launcher(c, "sleep", 50, 5000) }},
		{"launcher-poll", false, func(c chance) job { return launcher(c, "poll", 50, 1500) }},
		{"launcher-thread", false, func(c chance) job { return launcher(c, "thread", 0, 0) }},
		{"launcher-shell", false, func(c chance) job {
			j := onCPU(c)
			j.Bash = "PYTHON PROGRAM & while kill -0 $! 2>/dev/null; do sleep " + c.seconds(100, 1500) + "; done"
			return j
		}},
		{"launcher-mpi", false, func(c chance) job {
			j := onCPU(c)
			j.Bash = "mpirun --allow-run-as-root --oversubscribe -n 1 PYTHON PROGRAM" // of Debian's openmpi-bin
			return j
		}},
		{"fetch-0", false, func(c chance) job { return fetch(c, 0) }},
		{"fetch-2", false, func(c chance) job { return fetch(c, 2) }},
		{"fetch-cpu", false, fetchOnCPU},
		{"fetch-ranges", false, fetchRanges},
		{"fetch-retries", true, fetchRetries},
		{"fetch-poll", false, fetchPoll},
		{"fetch-serve", false, fetchServe},
		{"gradients", false, gradients},
		{"s3-objects", true, func(c chance) job { return s3(c, "objects") }},
		{"s3-workers", false, func(c chance) job { return s3(c, "objects", "--workers", "2") }},
		{"s3-read", false, func(c chance) job { return s3(c, "objects", "--read", c.number(16<<10, 128<<10)) }},
		{"s3-range", false, s3Range},
		{"s3-far", false, s3Far},
		{"s3-cpu", false, s3OnCPU},
		{"s3-model", false, func(c chance) job { return s3Model(c, c.between(2, 4)) }},
		{"s3-model-1", false, func(c chance) job { return s3Model(c, 1) }},
		{"s3-shards", false, s3Shards},
		{"s3-hidden", false, s3Hidden},
		{"s3-slow-work", false, s3SlowWork},
		{"s3-logs", false, s3Logs},
		{"s3-rank", false, s3Rank},
	}
}

// plain runs a job as a user without rights.
func plain(j job) job {
	j.User = "nobody"
	return j
}

// launcher is work without an accelerator that another program starts: see programs/launcher.py.
func launcher(c chance, way string, low, high int) job {
	j := onCPU(c)
	j.Bash = "exec PYTHON {programs}/launcher.py " + way + " " + c.seconds(low, high) + " PROGRAM"
	return j
}

// onCPU is work without an accelerator.
func onCPU(c chance) job {
	if c.IntN(2) == 0 {
		return tables(c)
	}
	return images(c, c.between(0, 2), "cpu", "--width", c.number(8, 32))
}

// hidden is work in which reading mostly hides behind the accelerator.
func hidden(c chance) job {
	j := images(c, 4, "sleep", "--step", c.seconds(110, 150))
	j.Disk.IOPS, j.Data[0].Count = c.between(150, 250), c.between(300, 400)
	return j
}

// queue is images with an accelerator whose queue is deep, as with CUDA. Two of three wait for it after some steps.
func queue(c chance, workers int) job {
	depth, sync := c.number(2, 50), strconv.Itoa(max(0, c.between(-10, 20)))
	return images(c, workers, []string{"async", "spin"}[c.IntN(2)], "--depth", depth, "--sync", sync)
}

func imagenet(c chance) job {
	return job{
		Program: "imagenet.py", Disk: c.disk(20, 40),
		Data: []dataSpec{{"classes", "{disk}/classes", c.between(200, 260), c.between(160, 240)}},
		Args: []string{"{disk}/classes", "-j", c.number(1, 3), "-b", c.number(8, 16), "--size", "48"},
	}
}

// raw reads from the machine's own disk without a limit.
func raw(c chance) job {
	return job{
		Program: "arrays.py", Disk: diskSpec{Kind: string(slowdisk.Local)}, GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"npy", "{disk}/rows.npy", c.between(14000, 20000), 4096 * c.between(1, 3)}},
		Args: []string{"{disk}/rows.npy", "--batch", c.number(100, 200), "--step", c.seconds(4, 10)},
	}
}

func shards(c chance, threads int) job {
	return job{
		Program: "shards.py", Disk: c.bandwidth(2, 4), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"shards", "{disk}/shards", c.between(480, 640), c.between(192, 256)}},
		Args: []string{"{disk}/shards", "--threads", strconv.Itoa(threads), "--batch", c.number(8, 16),
			"--step", c.seconds(25, 70)},
	}
}

func loadToGPU(c chance) job {
	j := load(c, []string{"pt", "safetensors", "gguf"}[c.IntN(3)])
	j.GPUs, j.Driver = 1, c.driver()
	j.Args = append(j.Args, "--gpu", c.seconds(100, 800))
	return j
}

func checkpoints(c chance) job {
	return job{
		Program: "checkpoints.py", Disk: c.bandwidth(20, 40), GPUs: 1, Driver: c.driver(),
		Args: []string{"{disk}", "--memory", "{memory}", "--size", strconv.Itoa(c.between(6, 16) << 20),
			"--every", c.number(8, 14), "--steps", c.number(60, 80), "--step", c.seconds(25, 45)},
	}
}

// fioOther reads little from a disk that is fast, while fio loads another one.
func fioOther(c chance) job {
	j := images(c, c.between(0, 2), "sleep")
	j.Disk, j.Fio = diskSpec{Kind: string(slowdisk.Memory)}, "another"
	return j
}

func ranks(c chance) job {
	count, size := c.between(1100, 1500), c.between(6, 12)*4096
	return job{
		Program: "ranks.py", Disk: c.bandwidth(8, 14), GPUs: 2, Driver: c.driver(),
		Data: []dataSpec{{"npy", "{memory}/rows.npy", count, size}, {"npy", "{disk}/rows.npy", count, size}},
		Args: []string{"{memory}/rows.npy", "{disk}/rows.npy", "--batch", c.number(8, 24), "--step", c.seconds(15, 40)},
	}
}

// peer waits for a rank on another machine, which is a process that does not belong to the job.
func peer(c chance) job {
	return job{
		Program: "peers.py", Disk: diskSpec{Kind: string(slowdisk.Memory)}, GPUs: 1, Driver: c.driver(),
		Args: []string{"{memory}/port", "--step", c.seconds(15, 30), "--steps", c.number(40, 60)},
		Peer: []string{"{memory}/port", "--answer", "--step", c.seconds(50, 80)},
	}
}

// fetch is a training that reads objects over HTTP, from a server that answers late.
func fetch(c chance, workers int) job {
	size := c.between(200, 900) << 10
	return job{
		Program: "fetch.py", Disk: diskSpec{Kind: string(slowdisk.Memory)}, GPUs: 1, Driver: c.driver(),
		Args: []string{"{memory}/port", "--size", strconv.Itoa(size), "--objects", c.number(60, 90), "--workers",
			strconv.Itoa(workers), "--decode", c.seconds(2, 8), "--step", c.seconds(20, 50)},
		Server: []string{"-port", "{memory}/port", "-size", strconv.Itoa(size), "-before", c.number(20, 60) + "ms",
			"-within", c.number(0, 40) + "ms"},
	}
}

// fetchOnCPU is fetch without an accelerator.
func fetchOnCPU(c chance) job {
	j := fetch(c, 0)
	j.GPUs, j.Args[len(j.Args)-1] = 0, "0"
	return j
}

// fetchRanges requests an object in pieces. The server answers each late.
func fetchRanges(c chance) job {
	j := fetch(c, 0)
	j.Args = append(j.Args, "--range", strconv.Itoa(c.between(64, 128)<<10), "--objects", c.number(20, 30))
	return j
}

// fetchRetries connects for each request. Some fail.
func fetchRetries(c chance) job {
	j := fetch(c, 0)
	j.Args, j.Server = append(j.Args, "--keep", "0"), append(j.Server, "-fail", c.number(5, 12))
	return j
}

// fetchPoll waits for a service that answers in a few bytes.
func fetchPoll(c chance) job {
	j := fetch(c, 0)
	j.Args = append(j.Args, "--poll", "--epochs", "2")
	return j
}

// fetchServe is a server that waits for requests, which bring it data.
func fetchServe(c chance) job {
	size := c.number(200<<10, 900<<10)
	return job{
		Program: "fetch.py", Disk: diskSpec{Kind: string(slowdisk.Memory)}, GPUs: 1, Driver: c.driver(),
		Args: []string{"{memory}/port", "--serve", "--size", size, "--objects", c.number(60, 90), "--step", c.seconds(15, 30),
			"--epochs", "2"},
		Peer: []string{"{memory}/port", "--send", "--size", size, "--decode", c.seconds(40, 80)},
	}
}

// late draws how a server of S3 is slow: late, or at a rate for each request, or for all.
func (c chance) late() []string {
	server := []string{"-seed", c.number(1, 1<<30)}
	switch c.IntN(3) {
	case 0:
		return append(server, "-before", c.number(20, 60)+"ms", "-spread", c.number(1, 40)+"ms")
	case 1:
		return append(server, "-before", c.number(2, 10)+"ms", "-rate", strconv.Itoa(c.between(6, 14)<<20))
	}
	return append(server, "-before", c.number(2, 10)+"ms", "-total", strconv.Itoa(c.between(6, 14)<<20))
}

// s3 is a job of programs/s3.py.
func s3(c chance, kind string, more ...string) job {
	size, count := strconv.Itoa(c.between(300, 900)<<10), c.number(50, 70)
	return job{
		Program: "s3.py", Disk: diskSpec{Kind: string(slowdisk.Memory)}, GPUs: 1, Driver: c.driver(),
		Args: append([]string{kind, "{memory}/port", "--size", size, "--objects", count, "--decode", c.seconds(4, 14),
			"--step", c.seconds(25, 60)}, more...),
		Server: append([]string{"-port", "{memory}/port", "-objects", count, "-size", size}, c.late()...), Serves: "bucket",
	}
}

// s3Range requests an object in pieces. The server answers each late.
func s3Range(c chance) job {
	j := s3(c, "objects", "--range", strconv.Itoa(c.between(64, 160)<<10), "--objects", "45")
	j.Server = append(j.Server, "-before", c.number(15, 30)+"ms")
	return j
}

// s3Far is a server behind a network with a round trip.
func s3Far(c chance) job {
	j := s3(c, "objects")
	j.Server = append(j.Server, "-round-trip", c.number(4, 25)+"ms")
	return j
}

func s3OnCPU(c chance) job {
	return s3(c, "objects", "--step", "0", "--decode", c.seconds(20, 40))
}

// s3Model downloads a model in parts, with boto3's threads, and reads it.
func s3Model(c chance, threads int) job {
	j := s3(c, "model", "--threads", strconv.Itoa(threads), "--range", strconv.Itoa(c.between(2, 6)<<20),
		"--decode", c.seconds(1500, 2500))
	size := strconv.Itoa(c.between(40, 70) << 20)
	j.Args = append(j.Args, "--size", size, "--step", c.seconds(300, 800))
	j.Server = append(j.Server, "-objects", "1", "-size", size)
	return j
}

// s3Shards streams tar shards.
func s3Shards(c chance) job {
	j := s3(c, "shards", "--threads", c.number(1, 2), "--read", []string{"0", "262144"}[c.IntN(2)])
	j.Data = []dataSpec{{"shards", "{memory}/shards", c.between(480, 640), c.between(192, 256)}}
	j.Server = append([]string{"-port", "{memory}/port", "-from", "{memory}/shards", "-seed", c.number(1, 1<<30)},
		"-before", c.number(5, 40)+"ms", "-total", strconv.Itoa(c.between(1500, 3000)<<10))
	return j
}

// s3Hidden reads ahead with workers, and its accelerator is slow: the server's time is hidden.
func s3Hidden(c chance) job {
	j := s3(c, "objects", "--workers", "3", "--step", c.seconds(160, 220), "--epochs", "2")
	j.Server = append(j.Server, "-rate", "0", "-total", "0", "-before", c.number(10, 40)+"ms")
	return j
}

// s3SlowWork is a fast server and slow work in the thread that gets the data.
func s3SlowWork(c chance) job {
	j := s3(c, "objects", "--decode", c.seconds(40, 80), "--epochs", "2")
	j.Server = append(j.Server, "-rate", "0", "-total", "0", "-before", "0", "-spread", "0")
	return j
}

// s3Logs stores logs, and gets no data.
func s3Logs(c chance) job {
	j := s3(c, "logs", "--epochs", "2")
	j.Server = append(j.Server, "-rate", strconv.Itoa(c.between(3, 8)<<20), "-total", "0")
	return j
}

// s3Rank gets data from a fast server, and waits for a slow peer that serves none.
func s3Rank(c chance) job {
	j := s3(c, "rank", "--meet", "{memory}/peer", "--epochs", "2")
	j.Server = append(j.Server, "-rate", "0", "-total", "0", "-before", "0", "-spread", "0")
	j.Peer = []string{"answer", "{memory}/peer", "--step", c.seconds(60, 120)}
	return j
}

// gradients is a rank that exchanges as much as it gets, with one that answers late.
func gradients(c chance) job {
	j := peer(c)
	bytes := c.number(1<<20, 4<<20)
	j.Args, j.Peer = append(j.Args, "--bytes", bytes), append(j.Peer, "--bytes", bytes)
	return j
}

// sharedGPU is two jobs on one accelerator. The other one reads from memory, and lasts longer.
func sharedGPU(c chance) job {
	j, other := images(c, c.between(0, 2), "sleep"), arrays(c, "npy")
	other.Data[0].Path, other.Args[0] = "{memory}/rows.npy", "{memory}/rows.npy"
	other.Name, other.Args = "second", append(other.Args, "--epochs", "1000")
	j.Second = &other
	return j
}

func pool(c chance) job {
	return job{
		Program: "pool.py", Disk: c.disk(110, 190),
		Data: []dataSpec{{"images", "{disk}/images", c.between(480, 640), c.between(192, 288)}},
		Args: []string{"{disk}/images", "--processes", c.number(1, 3)},
	}
}

// network reads from a mount that a server in user space serves, with a delay of low to high milliseconds a request.
func network(c chance, j job, low, high int) job {
	j.Disk = diskSpec{Kind: string(slowdisk.Network), Delay: time.Duration(c.between(low, high)) * time.Millisecond}
	return j
}

// raid reads from a file system on a slow disk and a fast one.
func raid(c chance) job {
	j := images(c, c.between(0, 2), "sleep")
	j.Disk = diskSpec{Kind: striped, IOPS: c.between(60, 100)}
	return j
}

func tables(c chance) job {
	return job{
		Program: "tables.py", Disk: c.bandwidth(2, 4),
		Data: []dataSpec{{"csv", "{disk}/table.csv", c.between(15000, 20000), 8 * c.between(80, 120)}},
		Args: []string{"{disk}/table.csv", "--rows", c.number(200, 800)},
	}
}

func database(c chance) job {
	return job{
		Program: "database.py", Disk: c.disk(250, 450), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"sqlite", "{disk}/images.db", c.between(480, 640), c.between(192, 288)}},
		Args: []string{"{disk}/images.db", "--workers", c.number(0, 3), "--batch", c.number(8, 16),
			"--step", c.seconds(25, 70)},
	}
}

func stream(c chance) job {
	count := c.between(480, 640)
	return job{
		Program: "stream.py", Disk: c.disk(110, 190), GPUs: 1, Driver: c.driver(),
		Data:  []dataSpec{{"images", "{disk}/images", count, c.between(192, 288)}},
		Input: "for epoch in 0 1 2; do tar -cf - -C {disk} images; done",
		Args:  []string{"--count", strconv.Itoa(count), "--batch", c.number(8, 16), "--step", c.seconds(25, 70)},
	}
}

func pickles(c chance) job {
	return job{
		Program: "pickles.py", Disk: c.bandwidth(3, 6), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"pickles", "{disk}/pickles", c.between(24, 32) * 256, c.between(6, 10) * 1024}},
		Args: []string{"{disk}/pickles", "--ahead", c.number(1, 4), "--kernels", c.number(4, 12),
			"--step", c.seconds(10, 25)},
	}
}

func asynchronous(c chance) job {
	j := images(c, 0, "sleep")
	j.Program = "asynchronous.py"
	j.Args = []string{"{disk}/images", "--threads", c.number(2, 6), "--batch", c.number(8, 16),
		"--step", c.seconds(25, 70)}
	return j
}

func small(c chance) job {
	return job{
		Program: "small.py", Disk: c.disk(250, 450),
		Data: []dataSpec{{"small", "{disk}/small", c.between(1200, 1600), c.between(4, 12) * 4096}},
		Args: []string{"{disk}/small", "--batch", c.number(32, 96)},
	}
}

func video(c chance) job {
	return job{
		Program: "video.py", Disk: c.bandwidth(8, 14), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"video", "{disk}/video", c.between(400, 600), 256 * 256 * 3}},
		Args: []string{"{disk}/video", "--clip", c.number(8, 16), "--step", c.seconds(15, 40)},
	}
}

func imports(c chance) job {
	return job{
		Program: "imports.py", Disk: c.bandwidth(10, 20),
		Data: []dataSpec{{"library", "{disk}/library", 1, 1}},
		Args: []string{"{disk}/library"},
	}
}

func prepare(c chance) job {
	return job{
		Program: "prepare.py", Disk: c.disk(110, 190),
		Data: []dataSpec{{"images", "{disk}/images", c.between(480, 640), c.between(192, 288)}},
		Args: []string{"{disk}/images", "--processes", c.number(1, 3), "--each", c.number(40, 120)},
	}
}

// background stores checkpoints in a thread.
func background(c chance) job {
	j := checkpoints(c)
	j.Args = append(j.Args, "--background")
	return j
}

func gloo(c chance) job {
	j := ranks(c)
	j.Program, j.Args = "gloo.py", append(j.Args, "--meet", "{memory}/meet")
	return j
}

// blocks is a program in C: threads that read directly, or io_uring in one thread.
func blocks(c chance, threads int, direct bool) job {
	rows, size := c.between(1100, 1500), c.between(6, 12)*4096
	j := job{
		Program: "blocks.c", Disk: c.disk(250, 450), GPUs: 1, Driver: c.driver(),
		Data: []dataSpec{{"rows", "{disk}/rows", rows, size}},
		Args: []string{"{disk}/rows", strconv.Itoa(rows), strconv.Itoa(size), strconv.Itoa(threads),
			c.number(12, 24), c.seconds(15, 40)},
	}
	if direct {
		j.Data = append(j.Data, dataSpec{"rows", "{memory}/rows", rows, size})
		j.Args = append(j.Args, "{memory}/rows")
	}
	return j
}

// digest is a program in Go, whose goroutines are on no thread of their own.
func digest(c chance) job {
	return job{
		Program: "digest", Disk: c.disk(110, 190),
		Data: []dataSpec{{"images", "{disk}/images", c.between(480, 640), c.between(192, 288)}},
		Args: []string{"{disk}/images", c.number(2, 6), c.number(300, 600)},
	}
}

// java is the same with so many threads of Java.
func java(c chance, threads int) job {
	j := digest(c)
	j.Program, j.Args[1] = "Pool.java", strconv.Itoa(threads)
	return j
}

// widePool is pool with so many processes.
func widePool(c chance, processes int) job {
	j := pool(c)
	j.Args[2] = strconv.Itoa(processes)
	return j
}

// shortly makes the windows of a job about a tenth as long: 0.3 to 2 s.
func shortly(c chance, j job) job {
	j.Data[0].Count /= c.between(6, 14)
	j.Args = append(j.Args, "--epochs", c.number(6, 10))
	return j
}

// gpuText is what the driver's stand-in plays.
func (j job) gpuText(folder string) string {
	text := fmt.Sprintf("period_us %d\nreport_us %d\nlate_us %d\n", j.Driver.Period, j.Driver.Report, j.Driver.Late)
	for i := range j.GPUs {
		text += fmt.Sprintf("gpu %d busy_file=%s/%d gpm=0\n", i, folder, i)
	}
	return text
}

// String is all that a job is made of.
func (j job) String() string {
	text, err := json.Marshal(j)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
