package resident

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// block is how much of the file one fault may map, in bytes. With 64 KiB, the kernel's default, 17 MB of 23 MB were
// resident again after a minute, with 16 KiB 12 MB. Smaller ones need twice as many mappings for 3 MB less.
var block = max(16<<10, uintptr(os.Getpagesize()))

// own returns the mappings of this program's file.
func own() (file, error) {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	return mappingsOf(path)
}

// file is where a file is mapped and cannot be written.
type file []mapping

// mapping is a range of addresses, as madvise takes them.
type mapping struct{ from, to uintptr }

// divide makes the kernel treat each block as a mapping of its own, because no fault maps more than one mapping. For
// that, every second block is left out of core dumps, where the contents of files do not belong anyway (core(5)).
func (f file) divide() error {
	for _, m := range f {
		for from := m.from &^ (2*block - 1); from < m.to; from += 2 * block {
			half := mapping{max(from, m.from), min(from+block, m.to)}
			if half.from >= half.to {
				continue
			}
			if err := half.advise(unix.MADV_DONTDUMP); err != nil {
				return err
			}
		}
	}
	return nil
}

// release unmaps the pages. A page may differ from the file where it was changed in memory: by the loader, a debugger's
// breakpoint or an uprobe. It would be lost, so its whole mapping stays.
func (f file) release() error {
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return err
	}
	defer func() { _ = pages.Close() }()
	for _, m := range f {
		same, err := m.same(pages)
		if err != nil {
			return err
		}
		if !same {
			continue
		}
		if err := m.advise(unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}

// Of a page's entry in /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	entry   = 8       // bytes
	present = 1 << 63 // in memory
	swapped = 1 << 62
	ofFile  = 1 << 61 // and not a copy that was written
)

// same reports whether all pages of a mapping that are there are those of the file.
func (m mapping) same(pagemap io.ReaderAt) (bool, error) {
	size := uintptr(os.Getpagesize())
	entries := make([]byte, (m.to-m.from)/size*entry)
	if _, err := pagemap.ReadAt(entries, int64(m.from/size*entry)); err != nil {
		return false, err
	}
	for at := 0; at < len(entries); at += entry {
		if e := binary.NativeEndian.Uint64(entries[at:]); e&(present|swapped) != 0 && e&ofFile == 0 {
			return false, nil
		}
	}
	return true, nil
}

func (m mapping) advise(advice uintptr) error {
	if _, _, failed := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, advice); failed != 0 {
		return failed
	}
	return nil
}

// mappingsOf returns where a file is mapped privately and cannot be written (proc_pid_maps(5)).
func mappingsOf(path string) (found file, err error) {
	list, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	lines := bufio.NewScanner(list)
	for lines.Scan() { // range, rights, offset, device, inode, path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.HasSuffix(lines.Text(), " "+path) || fields[1][1] == 'w' || fields[1][3] != 'p' {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(low, 16, strconv.IntSize)
		to, err2 := strconv.ParseUint(high, 16, strconv.IntSize)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		found = append(found, mapping{uintptr(from), uintptr(to)})
	}
	return found, lines.Err()
}
