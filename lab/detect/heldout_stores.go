//go:build linux

package main

import "strconv"

// heldOutStores store checkpoints, since 26 November 2026.
func heldOutStores() []entry {
	text := strconv.Itoa
	stores := func(c chance, how string, more ...string) {
		size := int(float64(c.p.Bus) * (0.5 + 0.2*c.Float64())) // as the bus carries in half a second or more
		c.run("detect_heldout_stores.py", append([]string{"{disk}/checkpoints", "--how", how, "--size", text(size), "--saves",
			text(c.between(3, 4)), "--steps", text(c.between(40, 60)), "--step", c.seconds(0.04, 0.07)}, more...)...)
	}
	return []entry{
		{"stores-plain", false, func(c chance) { stores(c, "plain") }},
		{"stores-new", true, func(c chance) { stores(c, "new", "--keep", text(c.between(1, 3))) }},
		{"stores-safe", false, func(c chance) { stores(c, "safe") }},
		{"stores-ranks", false, func(c chance) { stores(c, "ranks") }},
		{"stores-thread", false, func(c chance) { stores(c, "thread") }},
		{"stores-process", false, func(c chance) { stores(c, "process") }},
		{"stores-mount", false, func(c chance) {
			c.network()
			stores(c, one(c, "plain", "new", "safe", "thread"))
		}},
	}
}
