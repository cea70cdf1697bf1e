//go:build linux

package main

// heldOut are the cases that nothing is ever tuned with. Their programs are programs/detect_heldout_*.py.
func heldOut() []entry { return nil }
