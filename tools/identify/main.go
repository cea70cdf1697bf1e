// Identify prints who processes are (internal/identity), as a line of JSON each. Its arguments are their numbers.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/identity"
)

// readIn is the time for what is read in the background.
const readIn = 3 * time.Second

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "identify:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, arguments []string) error {
	f := identity.New("/", identity.Options{})
	defer f.Close()
	var pids []int
	for _, argument := range arguments {
		pid, err := strconv.Atoi(argument)
		if err != nil {
			return fmt.Errorf("%q is not the number of a process", argument)
		}
		pids = append(pids, pid)
		f.Of(pid)
	}
	time.Sleep(readIn)
	out := json.NewEncoder(w)
	for _, pid := range pids {
		if err := out.Encode(f.Of(pid)); err != nil {
			return err
		}
	}
	return nil
}
