// Package ways reads a file in several ways, in a window of the server of stallspan run.
package ways

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The environment of a copy of this program that reads a file: how, which, and where its report is to be written.
const (
	howVariable  = "STALLSPAN_TEST_HOW"
	fileVariable = "STALLSPAN_TEST_FILE"
	outVariable  = "STALLSPAN_TEST_OUT"
)

// Serve reads the file that the environment names, and reports whether it names one. Programs that start copies of
// themselves for this call it first.
func Serve() bool {
	how := os.Getenv(howVariable)
	if how == "" {
		return false
	}
	if err := announced(how, os.Getenv(fileVariable), os.Getenv(outVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// Environ is the environment in which a copy of this program reads a file, and writes its window's report to another.
func Environ(how, path, out string) []string {
	return append(os.Environ(), howVariable+"="+how, fileVariable+"="+path, outVariable+"="+out)
}

// How a program reads its file, or the files of its folder.
const (
	Mapped  = "mapped"  // by page faults, one after another
	One     = "one"     // one thread, a MiB a call
	Several = "several" // eight threads, a MiB a call
	Small   = "small"   // one thread, 8 KiB a call, in places that the kernel does not read ahead of
	Large   = "large"   // the same places, by calls of 128 KiB
	Direct  = "direct"  // 32 threads, 128 KiB a call, without the page cache
	Files   = "files"   // one thread, all files of a folder
)

const (
	threads   = 8
	mib       = 1 << 20
	SmallRead = 8 << 10   // bytes
	LargeRead = 128 << 10 // bytes
	smallPart = 16        // the small and large ways read one part of so many
)

// announced reads the file in a window of the server that STALLSPAN_SOCKET names, and writes the window's report.
func announced(how, path, out string) error {
	runtime.LockOSThread() // the leading thread of the window is the first one
	debug.SetGCPercent(-1) // a page fault in Go code would hold up the collector
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("STALLSPAN_SOCKET"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	var begun struct {
		ID string `json:"id"`
	}
	text, err := post(client, "/v1/windows", map[string]any{"kind": "model_load", "path": path, "pid": os.Getpid()})
	if err == nil {
		err = json.Unmarshal(text, &begun)
	}
	if err != nil {
		return err
	}
	if err := read(how, path); err != nil {
		return err
	}
	if text, err = post(client, "/v1/windows/"+begun.ID+"/end", map[string]any{}); err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o600)
}

func post(client *http.Client, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	response, err := client.Post("http://localhost"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return answer, err
}

func read(how, path string) error {
	if how == Files {
		return files(path)
	}
	flags := os.O_RDONLY
	if how == Direct {
		flags |= unix.O_DIRECT
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	switch size := info.Size(); how {
	case Mapped:
		return fault(file, size)
	case One:
		return pieces(file, size, mib, mib, 1)
	case Several:
		return pieces(file, size, mib, mib, threads)
	case Direct:
		return pieces(file, size, LargeRead, LargeRead, 4*threads)
	case Small, Large:
		if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
			return err
		}
		length := int64(SmallRead)
		if how == Large {
			length = LargeRead
		}
		return pieces(file, size/smallPart, length, length, 1)
	}
	return fmt.Errorf("there is no way %q", how)
}

func files(folder string) error {
	list, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range list {
		if _, err := os.ReadFile(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// fault reads a byte of each page of a mapping.
func fault(file *os.File, size int64) error {
	mapping, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	sum := byte(0)
	for i := 0; i < len(mapping); i += os.Getpagesize() {
		sum += mapping[i]
	}
	runtime.KeepAlive(sum)
	return unix.Munmap(mapping)
}

// aligned returns a buffer that begins with a page, as reads without the page cache need it.
func aligned(length int) []byte {
	page := os.Getpagesize()
	buffer := make([]byte, length+page)
	at := -int(uintptr(unsafe.Pointer(&buffer[0]))) & (page - 1)
	return buffer[at : at+length]
}

// pieces reads the file in pieces, by some threads.
func pieces(file *os.File, size, step, length int64, threads int) error {
	var next atomic.Int64
	work := func() error {
		buffer := aligned(int(length))
		for {
			at := (next.Add(1) - 1) * step
			if at >= size {
				return nil
			}
			if _, err := file.ReadAt(buffer[:min(length, size-at)], at); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	if threads == 1 {
		return work()
	}
	var all sync.WaitGroup
	failed := make([]error, threads)
	for i := range threads {
		all.Go(func() {
			runtime.LockOSThread()
			failed[i] = work()
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
