//go:build linux

package main

import "strconv"

// heldOutEndless have a GPU and no epochs, since 26 November 2026.
func heldOutEndless() []entry {
	text := strconv.Itoa
	raw := func(c chance, low, high float64, files int, end string) {
		c.add(model{Kind: "many", Path: "{disk}/data", Size: c.size(low, high), Files: files, End: end, Form: "raw"})
	}
	endless := func(what string, more func(chance) []string) func(chance) {
		return func(c chance) {
			raw(c, 1.5, 3, c.between(24, 45), one(c, "tar", "bin", "npy"))
			// Blocks of 256 KiB: as many as there are at this rate, in 12 to 18 s.
			blocks := float64(c.p.Models[0].Size) / (256 << 10)
			step := c.seconds(12/blocks, 18/blocks)
			args := []string{what, "{disk}/data", "--step", step, "--seed", text(c.IntN(1000))}
			c.run("detect_heldout_endless.py", append(args, more(c)...)...)
		}
	}
	none := func(chance) []string { return nil }
	ring := func(how ...string) func(chance) {
		return func(c chance) {
			size := c.between(12, 32) * (256 << 10)
			rate := c.p.Rate / 2
			c.run("detect_heldout_ring.py", append([]string{"ring", "{disk}/ring", "--places", text(c.between(3, 7)), "--size",
				text(size), "--rate", strconv.FormatInt(rate, 10), "--step", c.seconds(0.01, 0.03), "--length",
				c.seconds(16, 22)}, how...)...)
		}
	}
	return []entry{
		{"endless-once", false, endless("once", none)},
		{"endless-drawn", false, endless("drawn", func(c chance) []string {
			return []string{"--length", c.seconds(16, 24)}
		})},
		{"endless-renewed", false, endless("renewed", func(c chance) []string {
			return []string{"--each", text(c.between(4, 7)), "--workers", text(c.between(1, 2))}
		})},
		{"endless-growing", false, endless("growing", func(c chance) []string {
			return []string{"--length", c.seconds(18, 24)}
		})},
		{"endless-evaluated", false, endless("evaluated", func(c chance) []string {
			return []string{"--each", text(c.between(4, 8))}
		})},
		{"endless-ring", true, ring()},
		{"endless-ring-in-place", false, ring("--in-place")},
		{"endless-rollouts", false, func(c chance) {
			c.run("detect_heldout_ring.py", "rollouts", "{disk}/replay", "--step", c.seconds(0.03, 0.08), "--length",
				c.seconds(16, 22), "--seed", text(c.IntN(1000)))
		}},
		{"endless-pool", false, func(c chance) {
			raw(c, 1.5, 3, c.between(180, 260), one(c, "jpg", "npz", "wav"))
			c.run("detect_heldout_batch.py", "pool", "{disk}/data", "--each", text(c.between(16, 36)), "--step",
				c.seconds(0.03, 0.07), "--seed", text(c.IntN(1000)))
		}},
		{"endless-bench", false, func(c chance) {
			raw(c, 0.5, 1.2, 1, one(c, "mp4", "tar", "bin"))
			c.run("detect_heldout_batch.py", "bench", "{disk}/data", "--step", c.seconds(0.01, 0.03), "--length",
				c.seconds(16, 22), "--seed", text(c.IntN(1000)))
		}},
		{"endless-trials", false, func(c chance) {
			raw(c, 2, 4, c.between(6, 12), one(c, "npy", "bin"))
			c.run("detect_heldout_batch.py", "trials", "{disk}/data", "--step", c.seconds(0.02, 0.05), "--length",
				c.seconds(20, 26), "--seed", text(c.IntN(1000)))
		}},
	}
}
