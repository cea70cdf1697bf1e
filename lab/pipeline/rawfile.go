//go:build linux

package pipeline

import (
	"io"

	"golang.org/x/sys/unix"
)

// rawFile reads and writes in the calling thread, which blocks in the kernel. Go's files would wait for another thread
// that polls.
type rawFile int

func (f rawFile) Read(p []byte) (int, error) {
	n, err := retry(func() (int, error) { return unix.Read(int(f), p) })
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (f rawFile) Write(p []byte) (done int, err error) {
	for done < len(p) {
		n, err := retry(func() (int, error) { return unix.Write(int(f), p[done:]) })
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (f rawFile) Close() error { return unix.Close(int(f)) }

// ready reports whether Read would return at once, with data or at the end.
func (f rawFile) ready() bool {
	fds := []unix.PollFd{{Fd: int32(f), Events: unix.POLLIN}}
	n, err := retry(func() (int, error) { return unix.Poll(fds, 0) })
	return n > 0 && err == nil
}
