//go:build linux && (amd64 || arm64)

// Stallspan says where the time of a GPU went: to work, to waiting for storage, to waiting for the CPU.
package main

import (
	"os"

	"github.com/stallspan/stallspan/agent"
)

func main() { os.Exit(agent.Main(os.Args[1:])) }
