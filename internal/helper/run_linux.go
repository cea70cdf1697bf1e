//go:build amd64 || arm64

package helper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

const (
	socketFD = 3    // of keeper and helper
	maxFiles = 2048 // of the helper; the reader keeps 1024 at most
	// memoryLimit is when the collector works harder, in bytes. The helper needs a tenth.
	memoryLimit = 32 << 20
)

// init makes a process of this program a keeper or a helper. It does so before larger packages are initialized, which
// would cost it more memory than its work. Rights of the program's file are given up elsewhere first.
func init() {
	if len(os.Args) > 0 && os.Args[0] == name && !trust.Elevated() {
		os.Exit(run(os.Args[1:]))
	}
}

// run is the keeper, or the helper. It returns the exit status. Arguments are the host's root and the role, or for a
// keeper all roles of its sockets, after keeps.
func run(args []string) int {
	// Both end with the agent, and not before it: it takes its last reading after a signal to all of its processes.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(memoryLimit)
	if len(args) > 2 && args[0] == keeps {
		return keepAll(args)
	}
	err := errors.New("it is for the agent only")
	if len(args) == 2 {
		if r, found := roleOf(args[1]); found {
			err = serveAgent(socketFD, args[0], r)
		}
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFrame):
		return exitFrame
	}
	_ = unix.Sendto(socketFD, ended(err.Error()), unix.MSG_NOSIGNAL, nil) // fails if the agent is gone
	return exitFailed
}

// serveAgent answers questions until the agent is gone, or sends a damaged frame.
func serveAgent(fd int, root string, r role) error {
	if extra := trust.Permitted() &^ r.needs; extra != 0 {
		return fmt.Errorf("it has more capabilities than it needs: %#x", uint64(extra))
	}
	keeper := os.Getppid() // the filter refuses that, too
	if err := confine(r.more); err != nil {
		return err
	}
	if err := unix.Sendto(fd, hello(os.Getpid(), keeper), unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("greet the agent: %w", err)
	}
	return r.serve(fd, root)
}

// confine gives up what the helper does not need. It cannot be undone.
func confine(more []rule) error {
	// Processes of the same user may not trace it, and it leaves no memory behind.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid dumps of memory: %w", err)
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	program, err := filter(slices.Concat(rules(os.Getpid()), more))
	if err != nil {
		return err
	}
	return install(program)
}

// serve has questions answered. A packet without content is like the end of the connection. After an error the helper
// must end, unless the agent is gone.
func serve(fd int, answer func(question []byte) error) error {
	buf := make([]byte, maxQuestion+1)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
			return nil
		case err != nil:
			return fmt.Errorf("receive a question: %w", err)
		}
		if err := answer(buf[:n]); errors.Is(err, unix.EPIPE) {
			return nil
		} else if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

// send sends a frame. Without descriptors it uses a call that cannot pass any.
func send(fd int, frame []byte, descriptors []int) error {
	if len(descriptors) == 0 {
		return unix.Sendto(fd, frame, unix.MSG_NOSIGNAL, nil)
	}
	return unix.Sendmsg(fd, frame, unix.UnixRights(descriptors...), nil, unix.MSG_NOSIGNAL)
}
