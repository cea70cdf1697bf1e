package slowdisk

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filled returns a file of size random bytes on d, written back.
func filled(t testing.TB, d *Disk, size int) string {
	t.Helper()
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data)
	path := filepath.Join(d.Dir, "data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// aligned returns memory that is suitable for O_DIRECT.
func aligned(size int) []byte {
	const page = 4096
	all := make([]byte, size+page)
	skip := page - int(uintptr(unsafe.Pointer(&all[0]))%page)
	return all[skip : skip+size]
}

// direct reads count pieces of a file with O_DIRECT in parallel readers, and returns the total time and the median time
// of a piece.
func direct(t testing.TB, path string, piece, count, readers int) (all, median time.Duration) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	took := make([]time.Duration, count)
	next := make(chan int, count)
	for i := range count {
		next <- i
	}
	close(next)
	begin := time.Now()
	var done sync.WaitGroup
	for range readers {
		done.Go(func() {
			buffer := aligned(piece)
			for i := range next {
				before := time.Now()
				if n, err := unix.Pread(fd, buffer, int64(i*piece)); n != piece || err != nil {
					t.Errorf("%d of %d bytes read: %v", n, piece, err)
				}
				took[i] = time.Since(before)
			}
		})
	}
	done.Wait()
	all = time.Since(begin)
	slices.Sort(took)
	return all, took[count/2]
}

// counters are a device's fields of /proc/diskstats.
type counters struct {
	reads, readMerges, readSectors, readTime     int64
	writes, writeMerges, writeSectors, writeTime int64
}

func counted(t testing.TB, device string) counters {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", device, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	var n [8]int64
	for i, field := range strings.Fields(string(text))[:8] {
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return counters{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]}
}

// slow returns a slow disk with a cold file on it.
func slow(t testing.TB, kind Kind, o Options, size int) (*Disk, string) {
	t.Helper()
	d := opened(t, kind, o)
	path := filled(t, d, size)
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	return d, path
}
