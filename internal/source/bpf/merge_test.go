//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	mergeBatches = 10
	mergeReads   = 200 // of a batch
	mergePiece   = 4096
)

// readerProgram has a thread read a file past the page cache in small pieces, which a fast disk serves in some 100 us.
// It wakes another thread after each batch.
func readerProgram(f facts) {
	fd, err := unix.Open(os.Args[1], unix.O_RDONLY|unix.O_DIRECT, 0)
	must(err)
	var batches [2]int
	must(unix.Pipe2(batches[:], 0))
	consumer, wait := thread(func() {
		for n := 1; n > 0; {
			n, err = unix.Read(batches[0], make([]byte, 1))
			must(err)
		}
	})
	untilIn(consumer, uintptr(batches[0]))
	reader, wait2 := thread(func() {
		room := make([]byte, 2*mergePiece)
		piece := room[mergePiece-int(uintptr(unsafe.Pointer(&room[0])))%mergePiece:][:mergePiece]
		for batch := range mergeBatches {
			for i := range mergeReads {
				_, err := unix.Pread(fd, piece, int64(mergePiece*(batch*mergeReads+i)))
				must(err)
			}
			_, err := unix.Write(batches[1], []byte{0})
			must(err)
		}
		must(unix.Close(batches[1]))
	})
	f["reader"], f["consumer"] = reader, consumer
	wait2()
	wait()
}

// TestWaitsForStorageAreMerged: above its budget, a thread's waits for storage are reported as sums, and how far it was
// when it woke another one is still known.
func TestWaitsForStorageAreMerged(t *testing.T) {
	o := defaults
	o.jobBudget, o.allBudget, o.mergeBudget = 1<<20, 1<<20, 20
	s := opened(t, o)
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, mergePiece*mergeReads*mergeBatches), 0o600); err != nil {
		t.Fatal(err)
	}
	if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0); err != nil {
		t.Skipf("%s cannot be read past the page cache: %v", path, err)
	} else {
		_ = unix.Close(fd)
	}
	if file, err := os.Open(path); err == nil { // what is not written yet cannot be read from the disk
		_ = file.Sync()
		_ = file.Close()
	}
	f, events := trace(t, s, "reader", path)
	checkChain(t, events)
	own := of(events, f["reader"])
	_, _, blocked, _, sums := totals(events, f["reader"])
	if blocked == 0 {
		t.Skip("no read waited: this disk is as fast as memory")
	}
	if sums == 0 || len(own) > mergeBatches*mergeReads {
		t.Errorf("got %d events and %d sums for %d reads, want sums of many reads", len(own), sums, mergeBatches*mergeReads)
	}
	woken := 0
	for _, e := range of(events, f["consumer"]) {
		if e.Kind != sample.ThreadIn || e.Waker != f["reader"] {
			continue
		}
		woken++
		// A sum that is reported later begins with what the reader did on its CPU until then.
		late := slices.IndexFunc(own, func(o sample.ThreadEvent) bool {
			return o.Kind == sample.ThreadSum && o.From+o.Running < e.Woken && o.At > e.Woken
		})
		if late >= 0 {
			t.Errorf("woken at %v in the middle of a sum from %v to %v, want it to end before", e.Woken, own[late].From,
				own[late].At)
		}
	}
	if woken < mergeBatches/2 {
		t.Errorf("got %d times that the reader woke the other thread, want about %d", woken, mergeBatches)
	}
	if longest := longestSum(own); longest > 100*time.Millisecond {
		t.Errorf("got a sum of %v, want about a millisecond", longest)
	}
}

func longestSum(events []sample.ThreadEvent) (longest time.Duration) {
	for _, e := range events {
		if e.Kind == sample.ThreadSum {
			longest = max(longest, e.At-e.From)
		}
	}
	return longest
}
