//go:build linux

package main

import (
	"slices"
	"strconv"
)

// heldOut are the cases that nothing is ever tuned with. Their programs are programs/detect_heldout_*.py. Authors of
// detectors leave both unread, and the files heldout_*.go.
func heldOut() []entry {
	return slices.Concat(heldOutFirst(), heldOutLoads(), heldOutNone(), heldOutStores())
}

// heldOutFirst are those of before 26 November 2026. Most of their programs were read since (benches.md).
func heldOutFirst() []entry {
	llama := func(how string, more ...string) func(chance) {
		return func(c chance) {
			size := c.size(1.5, 3)
			a, b := c.file("llm-00001-of-00002.gguf", size), c.file("llm-00002-of-00002.gguf", size/2)
			args := append([]string{a, b, "--how", how, "--work", c.seconds(2, 4)}, more...)
			c.run("detect_heldout_llama.py", args...)
		}
	}
	return []entry{
		{"llama-populate", true, llama("populate")},
		{"llama-touch", false, llama("touch")},
		{"llama-stage", false, llama("stage")},
		{"llama-die", false, llama("stage", "--die")},
		{"blobs", false, func(c chance) {
			args := []string{}
			for range 3 {
				name := "blobs/sha256-" + strconv.FormatUint(c.Uint64(), 16)
				c.add(model{Kind: "file", Path: "{disk}/" + name, Size: c.size(1.5, 2.5), Form: "gguf", Tensors: 20})
				args = append(args, "{disk}/"+name)
			}
			c.run("detect_heldout_service.py", append(args, "--folder", "{memory}", "--work", c.seconds(2, 3))...)
		}},
		{"engines", false, func(c chance) {
			args := []string{}
			for _, name := range []string{"a", "b", "c", "d"} {
				args = append(args, c.file(name+"/rank0.engine", c.size(1, 2.5)))
			}
			c.run("detect_heldout_service.py", append(args, "--folder", "{memory}", "--work", c.seconds(1.5, 3))...)
		}},
		{"two-at-once", false, func(c chance) {
			a, b := c.file("a/model.engine", c.size(1.5, 2)), c.file("b/model.engine", c.size(1, 1.5))
			c.run("detect_heldout_service.py", a, b, "--both")
		}},
		{"tune", true, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 4), Files: 3, Name: "pytorch_model.bin"})
			c.add(model{Kind: "many", Path: "{disk}/features", Size: c.size(1, 2), Files: c.between(60, 120), End: "pt"})
			c.run("detect_heldout_tune.py", "{disk}/features", "--model", "{disk}/model", "--output", "{disk}", "--size",
				strconv.Itoa(c.size(1.2, 2)), "--step", c.seconds(0.05, 0.12))
		}},
		{"distributed", false, func(c chance) {
			for _, name := range []string{"__0_0.distcp", "__1_0.distcp"} {
				c.file("resume/"+name, c.size(0.8, 1.2))
			}
			c.run("detect_heldout_ranks.py", "{disk}/resume", "{disk}", "--size", strconv.Itoa(c.size(1, 2)), "--step",
				c.seconds(0.03, 0.05))
		}},
		{"engine-start", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2.5, 4), Files: c.between(2, 4)})
			c.run("detect_heldout_engine.py", "{disk}/model", "--work", c.seconds(2, 3))
		}},
		{"engine-hub", false, func(c chance) {
			c.add(model{Kind: "hub", Path: "{disk}/models--a--b", Size: c.size(2, 4), Files: 2})
			c.run("detect_heldout_engine.py", "{disk}/models--a--b/snapshots/*", "--work", c.seconds(2, 3))
		}},
		{"search", false, func(c chance) {
			c.add(model{Kind: "file", Path: "{disk}/index.bin", Size: c.size(4, 6), Form: "raw"})
			c.run("detect_heldout_quiet.py", "search", "{disk}/index.bin", "--length", c.seconds(10, 14))
		}},
		{"prepare", false, func(c chance) {
			c.add(model{Kind: "many", Path: "{disk}/data", Size: c.size(3, 6), Files: c.between(6, 12), End: "npy", Form: "raw"})
			c.run("detect_heldout_quiet.py", "prepare", "{disk}/data", "--length", c.seconds(10, 14))
		}},
	}
}
