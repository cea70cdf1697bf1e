// Package kernfile reads small files of /proc and /sys, and the numbers in them, without allocations.
package kernfile

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File reads one kernel file again and again, with one system call for each reading. A file that the kernel prints in
// one piece (single_open of fs/seq_file.c, and the files of cgroups) arrives whole in the first; os.File.ReadAt makes a
// second call to find its end. A File is open until Close and is not safe for concurrent use.
type File struct {
	path string
	fd   int
}

// Open opens a file for reading.
func Open(path string) (*File, error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{path, fd}, nil
}

// ReadAt reads once, from an offset. A file that is printed in one piece is complete if it does not fill buf. At the
// end of any other file, n is 0. The error is of type *os.PathError.
func (f *File) ReadAt(buf []byte, at int64) (n int, err error) {
	n, err = retry(func() (int, error) { return syscall.Pread(f.fd, buf, at) })
	if err != nil {
		return 0, &os.PathError{Op: "read", Path: f.path, Err: err}
	}
	return n, nil
}

// Close closes the file. Later readings fail.
func (f *File) Close() error {
	fd := f.fd
	f.fd = -1
	return os.NewSyscallError("close", syscall.Close(fd))
}

// ReadPiece returns the text of a file that the kernel prints in one piece, up to len(buf) bytes. It is in buf.
func ReadPiece(path string, buf []byte) ([]byte, error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	n, err := read(fd, path, buf)
	return buf[:n], err
}

// Text returns the text of a small file without surrounding space, up to 256 bytes; "" if it cannot be read.
func Text(path string) string {
	var buf [256]byte
	text, _ := ReadPiece(path, buf[:])
	return string(bytes.TrimSpace(text))
}

// ReadWhole returns the text of a file, up to limit bytes. It is in buf, or in a larger buffer for the next call. After
// an error it is what was read before. An os.File costs six system calls more, most of them to find out that no file of
// /proc can be waited for.
func ReadWhole(path string, buf []byte, limit int) ([]byte, error) {
	fd, err := open(path)
	if err != nil {
		return buf[:0], err
	}
	defer func() { _ = syscall.Close(fd) }()
	buf = buf[:min(cap(buf), limit)]
	for size := 0; ; {
		if size == len(buf) {
			if size >= limit {
				return buf, nil
			}
			buf = append(buf, make([]byte, min(max(size, 4096), limit-size))...)
		}
		n, err := read(fd, path, buf[size:])
		if size += n; n == 0 {
			return buf[:size], err
		}
	}
}

// read reads once from where the last read ended.
func read(fd int, path string, buf []byte) (n int, err error) {
	if n, err = retry(func() (int, error) { return syscall.Read(fd, buf) }); err != nil {
		return 0, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return n, nil
}

// Names returns up to limit names in a folder, in the order of the kernel.
func Names(path string, limit int) (names []string, err error) {
	fd, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	var buf [8192]byte
	for len(names) < limit {
		n, err := retry(func() (int, error) { return syscall.ReadDirent(fd, buf[:]) })
		if err != nil {
			return names, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		_, _, names = syscall.ParseDirent(buf[:n], limit-len(names), names)
	}
	return names, nil
}

func open(path string) (fd int, err error) {
	fd, err = retry(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return fd, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// retry repeats a call that a signal has interrupted.
func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// ParseUint parses decimal digits, without the copy that strconv needs for a string. It accepts no sign and no blanks.
func ParseUint(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 {
		return 0, false
	}
	for _, digit := range digits {
		d := uint64(digit - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// Displays returns the folders in /sys of the GPUs of a maker on PCI: display controllers and accelerators of a vendor,
// such as 0x10de.
func Displays(root, vendor string) (folders []string) {
	all, _ := filepath.Glob(filepath.Join("/", root, "sys/bus/pci/devices/*"))
	for _, folder := range all {
		class := Text(folder + "/class")
		if Text(folder+"/vendor") == vendor && (strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12")) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// ForeignPIDs reports whether drivers may number processes otherwise than they are seen here: they do so in the
// machine's first PID namespace (PROC_PID_INIT_INO in the kernel).
func ForeignPIDs(root string) bool {
	namespace, err := os.Readlink(filepath.Join("/", root, "proc/self/ns/pid"))
	return err == nil && namespace != "pid:[4026531836]"
}

// MemInfo returns a value of /proc/meminfo below a root, such as MemTotal, in bytes; 0 if it is not known.
func MemInfo(root, name string) uint64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			for value := range bytes.FieldsSeq(rest) {
				kilobytes, _ := ParseUint(value)
				return kilobytes << 10
			}
		}
	}
	return 0
}

// UserIDs returns the real and the effective user in the text of /proc/PID/status (proc_pid_status(5)); -1 for one that
// it does not say.
func UserIDs(status []byte) (own, effective int) {
	ids, n := [2]int{-1, -1}, 0
	for line := range bytes.Lines(status) {
		list, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		for word := range bytes.FieldsSeq(list) {
			if id, ok := ParseUint(word); ok && id <= math.MaxUint32 {
				ids[n] = int(id)
			}
			if n++; n == len(ids) {
				break
			}
		}
		break
	}
	return ids[0], ids[1]
}
