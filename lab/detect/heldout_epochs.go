//go:build linux

package main

import "strconv"

// heldOutEpochs are trainings with epochs, of libraries and formats that people use, since 26 November 2026.
func heldOutEpochs() []entry {
	text := strconv.Itoa
	tars := func(c chance, path string) []string {
		c.add(model{Kind: "tars", Path: path, Size: c.between(36, 60) << 20, Files: c.between(9, 18)})
		return []string{path, "--epochs", text(c.between(3, 5)), "--step", c.seconds(0.04, 0.09), "--seed",
			text(c.IntN(1000))}
	}
	rows := func(c chance, kind, path string, more ...string) {
		c.add(model{Kind: kind, Path: path, Files: c.between(500, 900)})
		c.run("detect_heldout_rows.py", append([]string{path, "--store", kind, "--epochs", text(c.between(3, 5)),
			"--step", c.seconds(0.05, 0.1), "--seed", text(c.IntN(1000))}, more...)...)
	}
	images := func(c chance, epochs int, step string, more ...string) {
		c.add(model{Kind: "jpegs", Path: "{disk}/train", Files: c.between(240, 360)})
		c.run("detect_heldout_images.py", append([]string{"{disk}/train", "--epochs", text(epochs), "--step", step,
			"--seed", text(c.IntN(1000))}, more...)...)
	}
	tokens := func(c chance, accumulate int, more ...string) {
		c.add(model{Kind: "file", Path: "{disk}/train.bin", Size: c.size(3, 6), Form: "raw"})
		steps := c.between(120, 200) / accumulate
		c.run("detect_heldout_tokens.py", append([]string{"{disk}/train.bin", "--steps", text(steps), "--accumulate",
			text(accumulate), "--rows", text(c.between(2, 5)), "--epochs", text(c.between(3, 5)), "--step",
			c.seconds(0.015, 0.03), "--seed", text(c.IntN(1000))}, more...)...)
	}
	return []entry{
		{"epochs-tars", true, func(c chance) {
			c.run("detect_heldout_tars.py", append(tars(c, "{disk}/train"), "--workers", text(c.between(1, 3)))...)
		}},
		{"epochs-tars-kept", false, func(c chance) { // the workers
			c.run("detect_heldout_tars.py", append(tars(c, "{disk}/train"), "--persistent")...)
		}},
		{"epochs-tars-cold", false, func(c chance) {
			c.run("detect_heldout_tars.py", append(tars(c, "{disk}/train"), "--cold", "--workers", text(c.between(0, 2)))...)
		}},
		{"epochs-lmdb", false, func(c chance) {
			rows(c, "lmdb", "{disk}/train.lmdb", "--workers", text(c.between(1, 3)))
		}},
		{"epochs-sqlite", false, func(c chance) { rows(c, "sqlite", "{disk}/train.db", "--validate") }},
		{"epochs-hdf5", false, func(c chance) {
			rows(c, "hdf5", "{disk}/train.h5", "--workers", text(c.between(0, 2)))
		}},
		{"epochs-zarr", false, func(c chance) { rows(c, "zarr", "{disk}/train.zarr") }},
		{"epochs-csv", false, func(c chance) {
			c.add(model{Kind: "csv", Path: "{disk}/tables", Size: c.between(24, 40) << 20, Files: c.between(4, 8)})
			c.run("detect_heldout_rows.py", "{disk}/tables", "--store", "csv", "--epochs", text(c.between(3, 5)), "--step",
				c.seconds(0.03, 0.06), "--seed", text(c.IntN(1000)))
		}},
		{"epochs-tokens", false, func(c chance) { tokens(c, 1, "--estimate", text(c.between(10, 30))) }},
		{"epochs-accumulate", false, func(c chance) { tokens(c, c.between(4, 8)) }},
		{"epochs-jpeg", false, func(c chance) {
			images(c, c.between(3, 5), c.seconds(0.05, 0.12), "--workers", text(c.between(1, 3)), "--accumulate",
				text(one(c, 1, 4)))
		}},
		{"epochs-jpeg-validate", false, func(c chance) {
			images(c, c.between(3, 4), c.seconds(0.06, 0.12), "--validate")
		}},
		{"epochs-jpeg-memory", false, func(c chance) { images(c, c.between(4, 6), c.seconds(0.06, 0.1), "--keep") }},
		{"epochs-long", false, func(c chance) { // of a quarter of a minute
			images(c, 3, c.seconds(0.3, 0.38), one(c, "--cold", "--validate"))
		}},
		{"epochs-parallel", false, func(c chance) {
			c.add(model{Kind: "many", Path: "{disk}/train", Size: c.size(1.5, 3), Files: c.between(280, 400), End: "npy",
				Form: "raw"})
			args := []string{"{disk}/train", "--epochs", text(c.between(3, 5)), "--step", c.seconds(0.06, 0.12), "--seed",
				text(c.IntN(1000))}
			if c.IntN(2) == 0 {
				args = append(args, "--persistent")
			}
			c.run("detect_heldout_parallel.py", args...)
		}},
		{"epochs-two", false, func(c chance) { // trainings at the same time, each with a GPU
			rows(c, one(c, "lmdb", "hdf5"), "{disk}/rows", "--workers", "1")
			c.run("detect_heldout_tars.py", append(tars(c, "{disk}/train"), "--workers", "1", "--gpu", "1")...)
		}},
	}
}
