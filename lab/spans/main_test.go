// Package spans tests the processor with real processes that load from storage that is really slow.
package spans

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/slowdisk"
)

func TestMain(m *testing.M) {
	if slowdisk.Serve() {
		return
	}
	if path := os.Getenv(loads); path != "" {
		os.Exit(load(path))
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each server of storage takes a second to end
	os.Exit(m.Run())
}

// Environment of a copy of this program that loads a file: its path, how long to wait before, and for how long to read.
const (
	loads   = "STALLSPAN_TEST_LOAD"
	waits   = "STALLSPAN_TEST_WAIT"
	repeats = "STALLSPAN_TEST_REPEAT"
)

// load is a program that loads a file, prints when it began and ended, and then waits for the end of its input.
func load(path string) int {
	wait, _ := time.ParseDuration(os.Getenv(waits))
	repeat, _ := time.ParseDuration(os.Getenv(repeats))
	time.Sleep(wait)
	began := time.Now()
	for first := true; first || time.Since(began) < repeat; first = false {
		file, err := os.Open(path)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		buffer := make([]byte, 1<<20)
		sum := sha256.New()
		for {
			n, err := file.Read(buffer)
			if err != nil {
				break
			}
			if repeat > 0 {
				sum.Write(buffer[:n])
			}
		}
		_ = file.Close()
	}
	fmt.Println(began.UnixNano(), time.Now().UnixNano())
	_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	return 0
}
