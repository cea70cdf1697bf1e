//go:build linux

package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
)

// data is what make.py or data.py writes.
type data struct {
	kind        string
	path        string
	count, size int
}

// job is a program with its data. {data} in its arguments is a folder.
type job struct {
	name    string
	program string // below the folder of programs; "" for a command
	command []string
	args    []string
	data    []data
	gpu     bool
	next    []string // a program that runs next to it and does not belong to it
}

type chance struct{ *rand.Rand }

func (c chance) between(low, high int) int { return low + c.IntN(high-low+1) }

func (c chance) number(low, high int) string { return strconv.Itoa(c.between(low, high)) }

func (c chance) seconds(low, high int) string {
	return strconv.FormatFloat(float64(c.between(low, high))/1000, 'f', 3, 64)
}

func (c chance) some(args ...string) []string {
	if c.IntN(2) == 0 {
		return args
	}
	return nil
}

// entry makes a job of a name and a seed.
type entry struct {
	name  string
	held  bool // nothing was tuned with this program
	train bool // its log has epochs that are to be found
	make  func(c chance) job
}

func (e entry) made(seed uint64) job {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.name))
	j := e.make(chance{rand.New(rand.NewPCG(seed, h.Sum64()))})
	j.name = e.name
	return j
}

// loop is a job of programs/loop.py.
func loop(c chance, kind string, gpu bool, args ...string) job {
	j := job{program: "loop.py", gpu: gpu}
	count, size := c.between(700, 1400), c.between(40, 110)<<10
	path := "{data}/train"
	switch kind {
	case "stream", "mapped":
		count, size = count/2, 128<<10
	case "memory":
		count /= 2
	}
	made := kind
	if kind == "memory" {
		made = "files"
	}
	j.data = []data{{made, path, count, size}}
	j.args = append([]string{kind, path, "--batch", c.number(8, 24), "--step", c.seconds(40, 90),
		"--work", c.number(10, 60), "--width", c.number(64, 512), "--epochs", c.number(3, 5)}, args...)
	if !gpu {
		j.args = append(j.args, "--width", c.number(800, 2000))
	}
	for i, a := range j.args {
		if a == "--validation" {
			j.data = append(j.data, data{made, j.args[i+1], count / c.between(3, 6), size})
		}
	}
	return j
}

func with(c chance, low, high int) []string { return []string{"--workers", c.number(low, high)} }

func args(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

var validates = []string{"--validation", "{data}/check"}

// other is a job of programs/others.py.
func other(c chance, kind string, gpu bool, more ...string) job {
	files := data{"files", "{data}/files", c.between(300, 600), c.between(40, 110) << 10}
	tail := []string{"--seed", c.number(1, 1000), "--seconds", c.number(25, 40), "{data}/files"}
	return job{program: "others.py", gpu: gpu, data: []data{files}, args: slices.Concat([]string{kind}, more, tail)}
}

// old is a job of the programs of make jobs, from memory.
func old(program string, gpu bool, d data, more ...string) job {
	return job{program: "../../jobs/programs/" + program, gpu: gpu, data: []data{d},
		args: append([]string{d.path}, more...)}
}

func entries() []entry {
	return []entry{
		{"workers", false, true, func(c chance) job {
			return loop(c, "files", true, args(with(c, 1, 4), []string{"--shuffle"})...)
		}},
		{"workers-validation", false, true, func(c chance) job {
			return loop(c, "files", true, args(with(c, 1, 4), []string{"--shuffle", "--save", "{data}/model.pt"}, validates)...)
		}},
		{"workers-sanity", false, true, func(c chance) job {
			return loop(c, "files", true, args(with(c, 2, 4), validates, []string{"--sanity", "2"})...)
		}},
		{"workers-cpu", false, true, func(c chance) job {
			return loop(c, "files", false, args(with(c, 1, 3), []string{"--shuffle"})...)
		}},
		{"persistent", false, true, func(c chance) job {
			return loop(c, "files", true, args(with(c, 2, 4), []string{"--shuffle", "--persistent"}, c.some(validates...))...)
		}},
		{"files-0", false, true, func(c chance) job { return loop(c, "files", true, c.some("--shuffle")...) }},
		{"shards-0", false, true, func(c chance) job { return loop(c, "shards", true, c.some("--shuffle")...) }},
		{"shards-2", false, true, func(c chance) job {
			return loop(c, "shards", true, args(with(c, 2, 2), c.some("--shuffle"), c.some("--persistent"))...)
		}},
		{"stream", false, true, func(c chance) job { return loop(c, "stream", true, c.some("--rewind")...) }},
		{"mapped", false, true, func(c chance) job {
			return loop(c, "mapped", true, args(with(c, 0, 2), c.some("--save", "{data}/model.pt"))...)
		}},
		{"memory-2", false, true, func(c chance) job {
			return loop(c, "memory", true, args(with(c, 1, 3), []string{"--shuffle"})...)
		}},
		{"memory-0", false, true, func(c chance) job { return loop(c, "memory", true, "--shuffle") }},
		{"server", false, false, func(c chance) job {
			return other(c, "serve", true, args([]string{"--every", c.seconds(200, 2000)}, c.some("--regular"))...)
		}},
		{"search", false, false, func(c chance) job {
			return other(c, "search", false, "--workers", c.number(1, 2), "--work", c.number(100, 300))
		}},
		{"timer", false, false, func(c chance) job { return other(c, "timer", false, "--every", c.seconds(300, 1500)) }},
		{"once", false, false, func(c chance) job {
			return other(c, "once", true, "--workers", c.number(1, 3), "--every", c.seconds(500, 2000))
		}},
		{"xargs", false, false, func(c chance) job {
			return job{data: []data{{"files", "{data}/files", c.between(1500, 2500), 60 << 10}},
				command: []string{"sh", "-c", fmt.Sprintf("find {data}/files -type f | xargs -P %d -n %d "+
					"sh -c 'for f; do sha256sum $f $f > {data}/out; done; sleep 0.3' _",
					c.between(1, 3), c.between(30, 80))}}
		}},

		// Nothing was tuned with the following.
		{"database", true, true, func(c chance) job {
			return loop(c, "database", true, args(with(c, 0, 3), []string{"--shuffle"}, c.some(validates...))...)
		}},
		{"files-validation", true, true, func(c chance) job {
			return loop(c, "files", true, args([]string{"--shuffle"}, validates)...)
		}},
		{"shards-cpu", true, true, func(c chance) job {
			return loop(c, "shards", false, args(with(c, 0, 2), c.some("--shuffle"))...)
		}},
		{"images", true, true, func(c chance) job {
			return old("images.py", true, data{"images", "{data}/images", c.between(480, 640), c.between(192, 288)},
				"--workers", c.number(0, 4), "--batch", c.number(8, 16), "--step", c.seconds(60, 120), "--epochs", "4")
		}},
		{"imagenet", true, true, func(c chance) job {
			return old("imagenet.py", false, data{"classes", "{data}/classes", c.between(300, 400), c.between(160, 240)},
				"-j", c.number(1, 3), "-b", c.number(8, 16), "--size", "48", "--epochs", "4")
		}},
		{"hdf5", true, true, func(c chance) job {
			return old("arrays.py", true, data{"h5", "{data}/rows.h5", c.between(1500, 2500), 8 * 4096},
				"--batch", c.number(12, 24), "--step", c.seconds(30, 50), "--epochs", "4")
		}},
		{"shard-threads", true, true, func(c chance) job {
			return old("shards.py", true, data{"shards", "{data}/shards", c.between(480, 640), c.between(192, 256)},
				"--threads", c.number(1, 2), "--batch", c.number(8, 16), "--step", c.seconds(60, 120), "--epochs", "4")
		}},
		{"pickles", true, true, func(c chance) job {
			return old("pickles.py", true,
				data{"pickles", "{data}/pickles", c.between(24, 32) * 256, c.between(6, 10) * 1024},
				"--ahead", c.number(1, 4), "--kernels", c.number(4, 12), "--step", c.seconds(30, 60), "--epochs", "4")
		}},
		{"tables", true, true, func(c chance) job {
			return old("tables.py", false, data{"csv", "{data}/table.csv", c.between(15000, 20000), 8 * c.between(80, 120)},
				"--rows", c.number(200, 800), "--epochs", "4")
		}},
		{"small", true, true, func(c chance) job {
			return old("small.py", false,
				data{"small", "{data}/small", c.between(2500, 3500), c.between(6, 12) * 4096}, "--epochs", "4")
		}},
		{"video", true, true, func(c chance) job {
			return old("video.py", true, data{"video", "{data}/video", c.between(500, 700), 256 * 256 * 3},
				"--clip", c.number(8, 16), "--step", c.seconds(60, 120), "--passes", "4")
		}},
		{"reload", true, false, func(c chance) job { return other(c, "reload", true, "--every", c.seconds(300, 1000)) }},
		{"pool", true, false, func(c chance) job {
			return other(c, "pool", false, "--workers", c.number(1, 3), "--tasks", c.number(2, 5), "--work", c.number(200, 500))
		}},
		{"web", true, false, func(c chance) job { return other(c, "web", false, "--every", c.seconds(100, 1000)) }},
		{"replaced", true, false, func(c chance) job { return other(c, "replaced", true, "--work", c.number(10, 60)) }},
		{"prepare", true, false, func(c chance) job {
			return old("prepare.py", false, data{"images", "{data}/images", c.between(480, 640), c.between(192, 288)},
				"--processes", c.number(1, 3), "--each", c.number(40, 120))
		}},
		{"fio", true, false, func(c chance) job {
			return job{command: []string{"fio", "--name=loops", "--directory={data}", "--size=96m",
				"--rw=" + []string{"read", "randread"}[c.IntN(2)],
				"--bs=64k", "--ioengine=" + []string{"sync", "psync"}[c.IntN(2)], "--loops=5", "--rate=" + c.number(16, 30) + "m"}}
		}},
		{"next-fio", true, true, func(c chance) job {
			j := loop(c, "files", true, args(with(c, 0, 2), []string{"--shuffle"})...)
			j.next = []string{"fio", "--name=next", "--directory={data}", "--size=64m", "--rw=read", "--bs=64k",
				"--ioengine=sync", "--time_based", "--runtime=200", "--rate=20m"}
			return j
		}},
	}
}
