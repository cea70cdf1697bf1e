//go:build linux

package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// plan is a case: programs, their models and data sets, and the storage of these.
type plan struct {
	Name     string        `json:"name"`
	Seed     uint64        `json:"seed"`
	Disk     slowdisk.Kind `json:"disk"`
	Rate     int64         `json:"bytes_per_second,omitempty"` // of the disk
	Delay    time.Duration `json:"delay_ns,omitempty"`         // of each request, of slowdisk.Network
	Ahead    int64         `json:"read_ahead,omitempty"`       // of slowdisk.Network, in bytes; 0 for the usual one
	Bus      int64         `json:"bus"`                        // bytes per second of a copy to the GPU
	Models   []model       `json:"models"`
	Programs [][]string    `json:"programs"` // program and arguments; {disk} and {memory} are folders
}

// model is what programs/models.py writes.
type model struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	Seed    uint64 `json:"seed"`
	Size    int    `json:"size"`
	Files   int    `json:"files,omitempty"`
	Tensors int    `json:"tensors,omitempty"`
	Name    string `json:"name,omitempty"`
	End     string `json:"end,omitempty"`
	Form    string `json:"form,omitempty"`
}

// chance draws the numbers of a case from its seed.
type chance struct {
	*rand.Rand
	p *plan
}

// entry makes a case of a name; short ones are those of -short.
type entry struct {
	name  string
	short bool
	make  func(c chance)
}

// plan returns the case of a seed.
func (e entry) plan(seed uint64) *plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.name))
	p := &plan{Name: e.name, Seed: seed}
	c := chance{rand.New(rand.NewPCG(seed, h.Sum64())), p}
	c.storage()
	p.Bus = int64(c.between(150, 500)) << 20
	e.make(c)
	return p
}

// between draws a whole number of low to high.
func (c chance) between(low, high int) int { return low + c.IntN(high-low+1) }

// seconds draws a time of low to high seconds, as an argument.
func (c chance) seconds(low, high float64) string {
	return strconv.FormatFloat(low+(high-low)*c.Float64(), 'f', 2, 64)
}

// one draws one of several.
func one[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }

// storage draws a slow device or a network mount. Sizes and rates are a fiftieth of real ones, so times are as real.
func (c chance) storage() {
	c.p.Disk = one(c, slowdisk.Throttled, slowdisk.SATA, slowdisk.Network)
	c.p.Rate = int64(c.between(40, 120)) << 20
	if c.p.Disk == slowdisk.Network {
		c.p.Delay = time.Duration(c.between(1, 4)) * time.Millisecond
	}
}

// size draws as many bytes as the storage reads in low to high seconds.
func (c chance) size(low, high float64) int {
	return int(float64(c.p.Rate)*(low+(high-low)*c.Float64())) &^ 0xfff
}

// file adds a model in one file, and returns its path.
func (c chance) file(name string, size int) string {
	path := "{disk}/" + name
	c.add(model{Kind: "file", Path: path, Size: size, Tensors: c.between(8, 60)})
	return path
}

func (c chance) add(m model) {
	m.Seed = c.Uint64N(1 << 20)
	c.p.Models = append(c.p.Models, m)
}

func (c chance) run(program string, args ...string) {
	c.p.Programs = append(c.p.Programs, append([]string{program}, args...))
}

// developed are the cases for which detectors are developed.
func developed() []entry {
	return []entry{
		{"torch", true, func(c chance) {
			a := c.file(one(c, "model.pt", "weights.pth", "pytorch_model.bin"), c.size(1.5, 3))
			c.run("detect_torch.py", a, "--work", c.seconds(1, 2.5))
		}},
		{"torch-late", false, func(c chance) {
			a, b := c.file("a/model.pt", c.size(1, 3)), c.file("b/checkpoint.ckpt", c.size(1, 3))
			c.run("detect_torch.py", a, b, "--late", "--loads", "1", "--work", c.seconds(1.5, 3))
		}},
		{"safetensors", true, func(c chance) {
			c.run("detect_safetensors.py", c.file("model.safetensors", c.size(1.5, 3)), "--work", c.seconds(1, 2.5))
		}},
		{"hub", false, func(c chance) {
			c.add(model{Kind: "hub", Path: "{disk}/models--some--model", Size: c.size(2, 4), Files: c.between(2, 4)})
			c.run("detect_safetensors.py", "{disk}/models--some--model/snapshots/*", "--work", c.seconds(1, 2.5))
		}},
		{"threads", false, func(c chance) {
			c.run("detect_safetensors.py", c.file("model.safetensors", c.size(1.5, 3)), "--threads",
				strconv.Itoa(c.between(2, 6)), "--work", c.seconds(1, 2.5))
		}},
		{"ranks", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 4), Files: 4})
			c.run("detect_safetensors.py", "{disk}/model", "--processes", "2", "--work", c.seconds(1, 2))
		}},
		{"gguf", false, func(c chance) {
			a, b := c.file("q8.gguf", c.size(1.5, 3)), c.file("q4.gguf", c.size(1, 2))
			args := []string{a, b, "--work", c.seconds(2, 3)}
			if c.IntN(2) == 0 {
				args = append(args, "--advise")
			}
			c.run("detect_gguf.py", args...)
		}},
		{"mapped-later", false, func(c chance) {
			c.run("detect_gguf.py", c.file("model.gguf", c.size(1.5, 3)), "--later", c.seconds(2, 4))
		}},
		{"triton", false, func(c chance) {
			name := one(c, "model.plan", "model.onnx", "model.engine")
			c.add(model{Kind: "triton", Path: "{disk}/repository", Size: c.size(3, 5), Files: 3, Name: name})
			c.run("detect_server.py", "{disk}/repository", "--repository", "--work", c.seconds(2, 4))
		}},
		{"swap", false, func(c chance) {
			name := one(c, "model.plan", "model.onnx", "model.engine")
			c.add(model{Kind: "triton", Path: "{disk}/repository", Size: c.size(2, 6), Files: 4, Name: name})
			c.run("detect_server.py", "{disk}/repository", "--repository", "--requests", c.seconds(31, 37), "--work", "1")
		}},
		{"server", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 4), Files: c.between(2, 3),
				Name: one(c, "pytorch_model.bin", "model.safetensors")})
			c.run("detect_server.py", "{disk}/model/*0*-of-*", "--compile", c.seconds(1.5, 3), "--warm-up", c.seconds(1, 2),
				"--work", c.seconds(3, 5))
		}},
		{"numpy", false, func(c chance) {
			a, b := c.file("a/weights.npz", c.size(1, 2)), c.file("b/params.npz", c.size(1, 2))
			c.run("detect_numpy.py", a, b)
		}},
		{"aborted", false, func(c chance) {
			c.run("detect_numpy.py", c.file("weights.npz", c.size(1.5, 3)), "--abort")
		}},
		{"download", false, func(c chance) {
			size := c.size(1.5, 2.5)
			c.add(model{Kind: "file", Path: "{memory}/source", Size: size, Form: "safetensors"})
			c.run("detect_download.py", "{memory}/source", "{disk}/model.safetensors", "--rate",
				fmt.Sprint(c.p.Rate/2))
		}},
		{"next-to", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 3), Files: 2})
			c.add(model{Kind: "shards", Path: "{disk}/tables", Size: 1 << 20, Files: 1})
			c.run("detect_safetensors.py", "{disk}/model")
			c.run("detect_idle.py", "{disk}/tables", "--length", "12")
		}},
		{"tables", true, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/tables", Size: 1 << 20, Files: 1})
			c.run("detect_idle.py", "{disk}/tables", "--length", c.seconds(8, 12))
		}},
		{"headers", false, func(c chance) {
			c.file("a/model.safetensors", c.size(1, 2))
			c.file("b/model.gguf", c.size(1, 2))
			c.run("detect_idle.py", "{disk}", "--what", "headers", "--length", c.seconds(8, 12))
		}},
		{"prefixes", false, func(c chance) {
			c.file("model.safetensors", 300<<20)
			c.run("detect_idle.py", "{disk}", "--what", "prefixes", "--length", c.seconds(8, 12))
		}},
		{"prefixes-busy", false, func(c chance) {
			c.file("model.safetensors", 300<<20)
			c.run("detect_idle.py", "{disk}", "--what", "prefixes", "--busy", "--length", c.seconds(8, 12))
		}},
		{"prefixes-mapped", false, func(c chance) {
			c.file("model.safetensors", one(c, 100<<20, 300<<20))
			c.run("detect_idle.py", "{disk}", "--what", "mapped", "--busy", "--length", c.seconds(8, 12))
		}},
		{"checksums", false, func(c chance) {
			c.file("model.safetensors", c.size(1, 2))
			c.run("detect_idle.py", "{disk}", "--what", "checksums", "--length", c.seconds(8, 12))
		}},
		{"tokens", false, func(c chance) {
			c.add(model{Kind: "file", Path: "{disk}/train.bin", Size: c.size(3, 6), Form: "raw"})
			c.run("detect_train.py", "{disk}/train.bin", "--rows", strconv.Itoa(c.between(50, 120)), "--step",
				c.seconds(0.02, 0.04))
		}},
		{"data-shards", false, func(c chance) {
			c.add(model{Kind: "many", Path: "{disk}/data", Size: c.size(4, 7), Files: c.between(12, 24),
				End: one(c, "pt", "bin")})
			c.run("detect_train.py", "{disk}/data", "--step", c.seconds(0.05, 0.12))
		}},
		{"checkpoints", false, training("fsync")},
		{"checkpoints-plain", false, training("plain")},
		{"checkpoints-thread", false, training("thread")},
		{"checkpoints-ranks", false, training("processes")},
	}
}

// training is a training with checkpoints; the first way resumes from one.
func training(how string) func(chance) {
	return func(c chance) {
		c.add(model{Kind: "file", Path: "{disk}/train.bin", Size: c.size(1, 2), Form: "raw"})
		args := []string{"{disk}/train.bin", "--checkpoints", "{disk}", "--how", how,
			"--size", strconv.Itoa(c.size(0.8, 2)), "--rows", strconv.Itoa(c.between(40, 90)),
			"--epochs", strconv.Itoa(c.between(3, 5)), "--step", c.seconds(0.02, 0.04)}
		if how == "fsync" {
			args = append(args, "--resume", c.file("last.pt", c.size(1, 2)))
		}
		c.run("detect_train.py", args...)
	}
}
