//go:build linux

package main

import "strconv"

// heldOutNone read or write the files of models and load none, since 26 November 2026.
func heldOutNone() []entry {
	text := strconv.Itoa
	files := func(c chance, what, path string, more ...string) {
		c.run("detect_heldout_files.py", append([]string{what, path, "--seed", text(c.IntN(1000))}, more...)...)
	}
	shards := func(c chance, path string) string {
		c.add(model{Kind: "shards", Path: path, Size: c.size(1.5, 3), Files: c.between(2, 4),
			Name: one(c, "model.safetensors", "pytorch_model.bin")})
		return path
	}
	tool := func(c chance) []string {
		if c.IntN(2) == 0 {
			return []string{"--tool"}
		}
		return nil
	}
	return []entry{
		{"none-copy", false, func(c chance) {
			files(c, "copy", shards(c, "{disk}/model"), append(tool(c), "--into", one(c, "{disk}/local", "{memory}"))...)
		}},
		{"none-hash", false, func(c chance) { files(c, "hash", shards(c, "{disk}/model"), tool(c)...) }},
		{"none-fetch", true, func(c chance) {
			for n := range c.between(2, 4) {
				c.add(model{Kind: "file", Path: "{memory}/part" + text(n), Size: c.size(0.6, 1), Form: "safetensors", Tensors: 12})
			}
			files(c, "fetch", "{memory}", "--into", "{disk}/model", "--rate", strconv.FormatInt(c.p.Rate/2, 10))
		}},
		{"none-inspect", false, func(c chance) {
			c.file("models/a/model.safetensors", c.size(1, 2))
			c.file("models/b/model.gguf", c.size(1, 2))
			c.file("models/c/model.pt", c.size(1, 2))
			files(c, "inspect", "{disk}/models", "--length", c.seconds(10, 14))
		}},
		{"none-serve", false, func(c chance) { files(c, "serve", "{disk}", "--length", c.seconds(14, 20)) }},
		{"none-embed", false, func(c chance) {
			c.add(model{Kind: "many", Path: "{disk}/data", Size: c.size(2, 4), Files: c.between(80, 160),
				End: one(c, "pt", "bin")})
			files(c, "embed", "{disk}/data", "--into", "{memory}", "--step", c.seconds(0.05, 0.1))
		}},
		{"none-convert", false, func(c chance) {
			c.add(model{Kind: "shards", Path: "{disk}/model", Size: c.size(2, 4), Files: c.between(1, 3)})
			c.run("detect_heldout_convert.py", "{disk}/model", "{disk}/model-f16.gguf")
		}},
	}
}
