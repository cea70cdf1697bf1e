//go:build overhead

package agent

import (
	"fmt"
	"net/http"
	_ "net/http/pprof" // its pages, for lab/footprint
	"os"
	"runtime"
)

// pprofVariable is the address of pprof's pages.
const pprofVariable = "STALLSPAN_PPROF"

func init() {
	address := os.Getenv(pprofVariable)
	if address == "" {
		runtime.MemProfileRate = 0 // as in the program of users, which has no profiles
		return
	}
	go func() {
		err := http.ListenAndServe(address, nil)
		fmt.Fprintln(os.Stderr, "pprof:", err)
		os.Exit(2)
	}()
}
