//go:build linux

package main

import (
	"strconv"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// heldOutLoads load models in ways of their own, since 26 November 2026.
func heldOutLoads() []entry {
	text := strconv.Itoa
	shards := func(c chance, path string, low, high float64, files int) string {
		c.add(model{Kind: "shards", Path: path, Size: c.size(low, high), Files: files, Tensors: c.between(12, 40)})
		return path
	}
	weights := func(c chance, how, path string) {
		c.run("detect_heldout_weights.py", path, "--how", how, "--again", one(c, "disk", "memory"), "--before",
			c.seconds(1, 4), "--work", c.seconds(2, 4), "--seed", text(c.IntN(1000)))
	}
	late := func(what string, low, high float64, models ...string) func(chance) {
		return func(c chance) {
			args := []string{what}
			for _, name := range models {
				args = append(args, shards(c, "{disk}/"+name, 1.2, 2.5, c.between(1, 2)))
			}
			c.run("detect_heldout_late.py", append(args, "--how", one(c, "read", "map"), "--folder", "{memory}", "--serve",
				c.seconds(low, high), "--work", c.seconds(3, 5))...)
		}
	}
	return []entry{
		{"loads-pread", true, func(c chance) { weights(c, "pread", shards(c, "{disk}/model", 1.5, 3, c.between(1, 3))) }},
		{"loads-touch", false, func(c chance) { weights(c, "touch", shards(c, "{disk}/model", 1.5, 3, 1)) }},
		{"loads-zip", false, func(c chance) {
			weights(c, "zip", c.file(one(c, "model.pt", "consolidated.00.pth"), c.size(1.5, 3)))
		}},
		{"loads-pool", false, func(c chance) {
			weights(c, "pool", shards(c, "{disk}/model", 2, 4, c.between(3, 6)))
		}},
		{"loads-direct", false, func(c chance) { weights(c, "direct", shards(c, "{disk}/model", 1.5, 3, c.between(1, 2))) }},
		{"loads-lock", false, func(c chance) { weights(c, "lock", c.file("model-q4_k_m.gguf", c.size(1.5, 3))) }},
		{"loads-pickle", false, func(c chance) {
			path := "{disk}/pytorch_model.bin"
			c.add(model{Kind: "pickle", Path: path, Size: c.size(1.5, 3), Tensors: c.between(10, 30)})
			weights(c, "pickle", path)
		}},
		{"loads-links", false, func(c chance) {
			c.add(model{Kind: "farm", Path: "{disk}/farm", Size: c.size(1.5, 3), Files: c.between(1, 3)})
			weights(c, one(c, "pread", "touch", "direct"), "{disk}/farm/current")
		}},
		{"loads-mount", false, func(c chance) { // with little read-ahead
			c.network()
			c.p.Ahead = int64(one(c, 16, 32, 64)) << 10
			if c.IntN(2) == 0 {
				// As one touch after another fetches in 1.5 to 3 s of a full rate.
				share := float64(c.p.Ahead) / (float64(c.p.Ahead) + float64(c.p.Rate)*c.p.Delay.Seconds())
				weights(c, "touch", shards(c, "{disk}/model", 1.5*share, 3*share, c.between(1, 2)))
				return
			}
			weights(c, "pread", shards(c, "{disk}/model", 1, 2, c.between(1, 2))) // reads of 4 MiB are faster
		}},
		{"loads-adapters", false, func(c chance) {
			args := []string{shards(c, "{disk}/base", 1.5, 3, c.between(1, 2))}
			for _, name := range []string{"a", "b", "c"} {
				path := "{disk}/adapters/" + name
				c.add(model{Kind: "shards", Path: path, Size: c.size(0.6, 1), Name: "adapter_model.safetensors"})
				args = append(args, path)
			}
			c.run("detect_heldout_adapters.py", append(args, "--work", c.seconds(2.5, 5))...)
		}},
		{"loads-quantise", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 4), Files: c.between(1, 3)})
			c.run("detect_heldout_convert.py", "{disk}/model", "{disk}/model-4bit", "--gpu", "--work", c.seconds(2, 4))
		}},
		{"loads-late", false, late("once", 33, 42, "model")},
		{"loads-again", false, late("again", 40, 55, "v1", "v2")},
		{"loads-swap", false, late("swap", 7, 11, "a", "b")},
	}
}

// network makes the storage a mount.
func (c chance) network() {
	c.p.Disk, c.p.Delay = slowdisk.Network, time.Duration(c.between(1, 4))*time.Millisecond
}
