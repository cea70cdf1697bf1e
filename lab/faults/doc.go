// Package faults has the fault matrix: a test in which each part that the agent depends on hangs, is killed, refuses or
// is slow, while windows of other users are open (docs/internals/faults.md).
package faults
