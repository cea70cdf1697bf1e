//go:build linux

package main

import (
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"strconv"
)

// job is a program with its arguments.
type job struct {
	program  string
	args     []string
	gpu      bool
	script   bool // a shell script runs it, and other commands after it
	torchrun bool // torch's launcher runs it, as one rank
}

type chance struct{ *rand.Rand }

func (c chance) number(low, high int) string { return strconv.Itoa(low + c.IntN(high-low+1)) }

// seconds draws a time of low to high milliseconds.
func (c chance) seconds(low, high int) string {
	return strconv.FormatFloat(float64(low+c.IntN(high-low+1))/1000, 'f', 3, 64)
}

// entry makes a job of a name and a seed.
type entry struct {
	name  string
	held  bool // nothing was tuned with this program
	steps bool // it has steps
	make  func(c chance) job
}

func (e entry) made(seed uint64) job {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.name))
	c := chance{rand.New(rand.NewPCG(seed, h.Sum64()))}
	j := e.make(c)
	j.args = append(j.args, "--seed", c.number(1, 1000))
	return j
}

// command returns the words that run a job.
func (j job) command(programs string) (all []string) {
	if j.script {
		all = append(all, "/bin/sh", filepath.Join(programs, "train.sh"))
	}
	all = append(all, python)
	if j.torchrun {
		// Port 0 is any free one: others run at the same time. Nothing is redirected, for there is no rank 1. torch 1.13
		// with Python 3.11 cannot take the default for that.
		all = append(all, "-m", "torch.distributed.run", "--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0",
			"--nproc_per_node", "1", "--redirects", "1:1", "--tee", "1:1")
	}
	return append(append(all, filepath.Join(programs, j.program)), j.args...)
}

func training(gpu bool, args ...string) job { return job{program: "steps.py", args: args, gpu: gpu} }

func other(gpu bool, args ...string) job { return job{program: "others.py", args: args, gpu: gpu} }

func held(gpu bool, args ...string) job { return job{program: "steps_held.py", args: args, gpu: gpu} }

func (j job) byScript() job {
	j.script = true
	return j
}

func (j job) byTorchrun() job {
	j.torchrun = true
	return j
}

// lasting returns the length of a step, and how many make some seconds.
func (c chance) lasting(low, high, seconds int) []string {
	step := low + c.IntN(high-low+1)
	return []string{"--step", strconv.FormatFloat(float64(step)/1000, 'f', 3, 64),
		"--steps", strconv.Itoa(max(8, seconds*1000/step))}
}

func with(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func words(w ...string) []string { return w }

func entries() []entry {
	return []entry{
		{"workers", false, true, func(c chance) job { // bound by the GPU
			return training(true, with(c.lasting(100, 500, 12),
				words("--workers", c.number(1, 4), "--cost", c.seconds(10, 60)))...)
		}},
		{"workers-slow", false, true, func(c chance) job { // bound by data
			return training(true, with(c.lasting(100, 300, 12), words("--workers", c.number(1, 3), "--waits",
				"--cost", c.seconds(500, 1500), "--item-jitter", "0.5"))...)
		}},
		{"workers-bound", false, true, func(c chance) job { // the same, with the batches of one worker
			return training(true, with(c.lasting(100, 300, 10), words("--workers", "1", "--waits",
				"--cost", c.seconds(350, 700)))...)
		}},
		{"workers-many", false, true, func(c chance) job { // the same, with those of several
			return training(true, with(c.lasting(80, 150, 10), words("--workers", c.number(3, 5), "--waits",
				"--cost", c.seconds(600, 1500), "--item-jitter", "0.6"))...)
		}},
		{"workers-long", false, true, func(c chance) job {
			return training(true, with(c.lasting(4000, 10000, 60), words("--workers", "2", "--cost", c.seconds(100, 600),
				"--epochs", "1"))...)
		}},
		{"workers-middle", false, true, func(c chance) job {
			return training(true, with(c.lasting(800, 2500, 25),
				words("--workers", c.number(1, 3), "--cost", c.seconds(100, 600),
					"--jitter", "0.15", "--persistent", "--backward"))...)
		}},
		{"validation", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 400, 15),
				words("--workers", c.number(1, 3), "--check", c.number(10, 20),
					"--save"))...)
		}},
		{"validation-inside", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 400, 18),
				words("--workers", c.number(1, 2), "--check", c.number(8, 12),
					"--check-every", c.number(20, 30)))...)
		}},
		{"accumulate", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 400, 15),
				words("--workers", c.number(1, 2), "--accumulate", c.number(2, 8),
					"--backward"))...)
		}},
		{"two-networks", false, true, func(c chance) job {
			return training(true, with(c.lasting(200, 600, 15),
				words("--workers", c.number(1, 2), "--parts", "2", "--backward"))...)
		}},
		{"two-networks-memory", false, true, func(c chance) job {
			return training(true, with(c.lasting(200, 600, 15), words("--parts", "2", "--backward"))...)
		}},
		{"log", false, true, func(c chance) job {
			return training(true, with(c.lasting(100, 300, 15),
				words("--workers", c.number(1, 3), "--log", c.number(3, 10)))...)
		}},
		{"queued", false, true, func(c chance) job {
			return training(true, with(c.lasting(100, 300, 12),
				words("--workers", c.number(1, 3), "--queued", c.number(2, 6)))...)
		}},
		{"spins", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 400, 12), words("--workers", "1", "--spins", "--backward"))...)
		}},
		{"memory", false, true, func(c chance) job {
			return training(true, c.lasting(100, 400, 12)...)
		}},
		{"memory-backward", false, true, func(c chance) job {
			return training(true, with(c.lasting(200, 800, 15), words("--backward", "--log", c.number(3, 10)))...)
		}},
		{"threads", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 600, 15), words("--threads", c.number(1, 3), "--waits",
				"--cost", c.seconds(50, 600)))...)
		}},
		{"cpu", false, true, func(c chance) job {
			return training(false, with(c.lasting(200, 500, 12), words("--workers", "1", "--cost", c.seconds(10, 100)))...)
		}},
		{"cpu-memory", false, true, func(c chance) job {
			return training(false, with(c.lasting(200, 500, 12), words("--pool", "2"))...)
		}},
		{"script", false, true, func(c chance) job {
			return training(true, with(c.lasting(100, 500, 12),
				words("--workers", c.number(1, 4), "--cost", c.seconds(10, 60)))...).byScript()
		}},
		{"script-once", false, true, func(c chance) job { // one epoch, with validation
			return training(true, with(c.lasting(150, 400, 15), words("--workers", c.number(1, 3),
				"--check", c.number(10, 20), "--epochs", "1"))...).byScript()
		}},
		{"torchrun", false, true, func(c chance) job {
			return training(true, with(c.lasting(100, 500, 12),
				words("--workers", c.number(1, 4), "--cost", c.seconds(10, 60)))...).byTorchrun()
		}},
		{"torchrun-bound", false, true, func(c chance) job { // bound by data
			return training(true, with(c.lasting(100, 300, 10), words("--workers", "1", "--waits",
				"--cost", c.seconds(350, 700)))...).byTorchrun()
		}},
		{"torchrun-cpu", false, true, func(c chance) job {
			return training(false, with(c.lasting(200, 500, 12), words("--workers", "1",
				"--cost", c.seconds(10, 100)))...).byTorchrun()
		}},
		{"script-torchrun", false, true, func(c chance) job {
			return training(true, with(c.lasting(150, 600, 15),
				words("--workers", c.number(1, 3), "--cost", c.seconds(10, 60)))...).byTorchrun().byScript()
		}},
		{"timer", false, false, func(c chance) job { return other(false, "timer", "--every", c.seconds(200, 1500)) }},
		{"server", false, false, func(c chance) job {
			return other(true, "server", "--every", c.seconds(200, 800))
		}},
		{"server-regular", false, false, func(c chance) job {
			return other(true, "server", "--regular", "--every", c.seconds(200, 1500))
		}},
		{"search", false, false, func(c chance) job { return other(false, "search", "--every", c.seconds(100, 500)) }},
		{"pool", false, false, func(c chance) job { return other(false, "pool", "--every", c.seconds(100, 500)) }},
		{"heartbeat", false, false, func(c chance) job { return other(false, "heartbeat", "--every", c.seconds(500, 1500)) }},
		{"logger", false, false, func(c chance) job { return other(true, "logger", "--every", c.seconds(300, 1200)) }},
		{"children", false, false, func(c chance) job { return other(false, "children", "--every", c.seconds(300, 1500)) }},
		{"cron", false, false, func(c chance) job {
			return held(false, "cron", "--cost", c.seconds(50, 300), "--step", c.seconds(100, 500))
		}},

		// Nothing was tuned with the following.
		{"finetune", true, true, func(c chance) job {
			return held(true, with(words("finetune"), c.lasting(150, 1200, 20), words("--workers", c.number(1, 3),
				"--cost", c.seconds(20, 300), "--every", c.number(2, 8)))...)
		}},
		{"finetune-0", true, true, func(c chance) job {
			return held(true, with(words("finetune"), c.lasting(150, 600, 15), words("--workers", "0",
				"--cost", c.seconds(20, 100), "--every", c.number(2, 8)))...)
		}},
		{"adversarial", true, true, func(c chance) job {
			return held(true, with(words("adversarial"), c.lasting(200, 800, 18), words("--workers", c.number(1, 2),
				"--cost", c.seconds(20, 100), "--split", c.seconds(500, 700)))...)
		}},
		{"adversarial-0", true, true, func(c chance) job {
			return held(true, with(words("adversarial"), c.lasting(200, 800, 18), words("--workers", "0",
				"--cost", c.seconds(10, 40), "--split", c.seconds(500, 700)))...)
		}},
		{"scales", true, true, func(c chance) job {
			return held(true, with(words("scales"), c.lasting(150, 800, 18), words("--workers", c.number(1, 3),
				"--cost", c.seconds(50, 400)))...)
		}},
		{"processes", true, true, func(c chance) job {
			return held(false, with(words("processes"), c.lasting(200, 600, 15), words("--workers", "1",
				"--cost", c.seconds(30, 300)))...)
		}},
		{"in-memory", true, true, func(c chance) job {
			return held(true, with(words("memory"), c.lasting(100, 500, 15), words("--every", c.number(5, 20)))...)
		}},
		{"episodes", true, false, func(c chance) job {
			return held(true, "episodes", "--cost", c.seconds(30, 200), "--step", c.seconds(100, 400))
		}},
		{"crawl", true, false, func(c chance) job { return held(false, "crawl", "--step", c.seconds(200, 1000)) }},
		{"render", true, false, func(c chance) job { return held(false, "render", "--cost", c.seconds(40, 200)) }},
		{"chat", true, false, func(c chance) job {
			return held(false, "chat", "--cost", c.seconds(20, 100), "--step", c.seconds(100, 500))
		}},
		{"scripts", true, false, func(c chance) job { return held(false, "scripts", "--step", c.seconds(100, 400)) }},
	}
}
