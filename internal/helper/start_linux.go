//go:build amd64 || arm64

package helper

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// Variable is set to where the host's files are for the helpers, such as / or /hostfs. With it, a Collector starts
// helpers, too. From Separate to Inherit it holds what was started, as JSON.
const Variable = "STALLSPAN_HELPER"

// started is what Separate leaves to Inherit.
type started struct {
	Root    string         `json:"root"`
	Keeper  int            `json:"keeper"`  // its process ID; 0 if it could not start
	Sockets map[string]int `json:"sockets"` // our end of each role's; -1 without a keeper
	Failed  string         `json:"failed"`  // why there is no keeper
}

// Wanted reports whether the environment asks for helpers.
func Wanted() bool { return strings.HasPrefix(os.Getenv(Variable), "/") && !trust.Elevated() }

// Separate starts a helper for each role that this process has the capabilities for, and gives up all capabilities but
// those to keep: it starts this program again, and does not return. It returns nil without an effect for no role. If
// the helpers cannot be started, the capabilities are given up all the same, and questions say why.
func Separate(keep trust.Set) error {
	var names []string
	var needs trust.Set
	for _, r := range roles {
		if trust.Granted()&r.needs == r.needs {
			names, needs = append(names, r.name), needs|r.needs
		}
	}
	if len(names) == 0 {
		return nil
	}
	s := started{Root: "/", Sockets: map[string]int{}}
	if Wanted() {
		s.Root = filepath.Clean(os.Getenv(Variable))
	}
	if err := s.start(names, needs); err != nil {
		s.Failed = cannotStart(err) + ", then start this program again"
		for _, n := range names {
			s.Sockets[n] = -1
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.Setenv(Variable, string(text)); err != nil {
		return err
	}
	return trust.Keep(keep)
}

// start starts the keeper of some roles, with the capabilities that they need.
func (s *started) start(names []string, needs trust.Set) error {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	for _, n := range names {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("make a socket: %w", err)
		}
		s.Sockets[n], theirs = ends[0], append(theirs, os.NewFile(uintptr(ends[1]), "socket"))
	}
	err := trust.StartWith(needs, func() error {
		p, err := startKeeper(append([]string{keeps, s.Root}, names...), nil, theirs)
		if err == nil {
			s.Keeper = p.Pid
		}
		return err
	})
	for _, fd := range s.Sockets {
		if err != nil {
			_ = unix.Close(fd)
		} else if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep a socket: %w", err)
		}
	}
	return err
}

// Inherit returns the helpers that Separate has started. It waits for the first ones, but not for ever: a question says
// what is wrong with one.
func Inherit() (Helpers, error) {
	text := os.Getenv(Variable)
	if !strings.HasPrefix(text, "{") {
		return Helpers{}, nil
	}
	_ = os.Unsetenv(Variable) // programs that we start have nothing to do with it
	var s started
	damaged := fmt.Errorf("unset %s, or set it to the folder with the host's files, such as /", Variable)
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Helpers{}, damaged
	}
	h := Helpers{Root: s.Root}
	if s.Keeper > 1 {
		h.end = reap(s.Keeper)
	}
	for name, fd := range s.Sockets {
		r, found := roleOf(name)
		c, err := s.inherit(r, fd)
		if !found || err != nil {
			h.Close()
			return Helpers{}, damaged
		}
		switch name {
		case "read":
			h.Reader = &Client{c}
		case "trace":
			h.Tracer = &Tracer{c}
		}
	}
	h.await(startWait)
	return h, nil
}

// inherit takes over a socket.
func (s *started) inherit(r role, fd int) (*connection, error) {
	if s.Keeper == 0 {
		return refused(r.does, s.Failed), nil
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); fd <= 2 || err != nil ||
		kind != unix.SOCK_SEQPACKET {
		return nil, errFrame
	}
	file := os.NewFile(uintptr(fd), "helper")
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file) // a copy
	if err != nil {
		return nil, err
	}
	return connect(conn, r.does), nil
}

// await waits until each helper has greeted, or has said why it cannot.
func (h Helpers) await(limit time.Duration) {
	late := time.After(limit)
	var all []*connection
	if h.Reader != nil {
		all = append(all, h.Reader.connection)
	}
	if h.Tracer != nil {
		all = append(all, h.Tracer.connection)
	}
	for _, c := range all {
		select {
		case <-c.greeted:
		case <-late:
			return
		}
	}
}

// reap waits for the keeper to end, and returns a function that waits until it has. It ends with the sockets.
func reap(pid int) (end func()) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = p.Wait() }()
	return func() {
		late := time.AfterFunc(answerWait, func() { _ = p.Kill() })
		defer late.Stop()
		<-done
	}
}
