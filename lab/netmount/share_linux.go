// Package netmount mounts folders by NFS from real servers on this machine, whose answers are logged, and late or lost.
package netmount

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
	"golang.org/x/sys/unix"
)

// Share is a mounted folder.
type Share struct {
	Dir    string // where it is mounted
	Folder string // that is served

	proxy   *proxy
	running sync.WaitGroup
	server  io.Closer
}

// Open serves a folder, and mounts it at another. Version 3 has a server in this process; 4.0 to 4.2 have the kernel's,
// which serves one folder at a time in a network namespace. Options are more of mount(8). It needs root, and a network
// namespace of its own is wise.
func Open(version, folder, dir, options string) (s *Share, err error) {
	s = &Share{Dir: dir, Folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	server := ""
	if version == "3" {
		if server, err = s.serve(); err != nil {
			return s, err
		}
	} else if server, err = serveByKernel(folder); err != nil {
		return s, err
	}
	if s.proxy, err = startProxy(server); err != nil {
		return s, err
	}
	// As mount.nfs does, which resolves the name of the server and asks for ports.
	port := s.proxy.listener.Addr().(*net.TCPAddr).Port
	kind, data := "nfs4", fmt.Sprintf("addr=127.0.0.1,clientaddr=127.0.0.1,port=%d,vers=%s", port, version)
	if version == "3" {
		kind = "nfs"
		data = fmt.Sprintf("addr=127.0.0.1,port=%d,vers=3,proto=tcp,mountport=%d,mountproto=tcp,nolock,noacl", port, port)
	}
	if options != "" {
		data += "," + options
	}
	if err := unix.Mount("127.0.0.1:/", dir, kind, unix.MS_NOATIME, data); err != nil {
		return s, fmt.Errorf("mount %s: %w", data, err)
	}
	return s, nil
}

// serve starts a server of version 3, and returns its address.
func (s *Share) serve() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.server = listener
	handler := helpers.NewCachingHandler(helpers.NewNullAuthHandler(osfs.New(s.Folder)), 1<<16)
	s.running.Go(func() { _ = nfs.Serve(listener, handler) }) // it ends with an error, as the listener is closed
	return listener.Addr().String(), nil
}

// Close unmounts, and ends the server of version 3. The kernel's stays.
func (s *Share) Close() error {
	var problems []error
	if s.proxy != nil {
		if err := unix.Unmount(s.Dir, unix.MNT_FORCE); err != nil && !errors.Is(err, unix.EINVAL) { // it is not mounted
			problems = append(problems, fmt.Errorf("unmount %s: %w", s.Dir, err))
		}
		problems = append(problems, s.proxy.close())
	}
	if s.server != nil {
		problems = append(problems, s.server.Close())
	}
	s.running.Wait()
	return errors.Join(problems...)
}

// Delay makes answers to a class of requests so late.
func (s *Share) Delay(class Class, delay time.Duration) {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.proxy.delays[class] = delay
}

// Fail loses the next replies to READ, or breaks the connection in their place.
func (s *Share) Fail(replies int, broken bool) {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	what := lost
	if broken {
		what = breaks
	}
	s.proxy.faults = slices.Repeat([]fault{what}, replies)
}

// Log returns the requests that arrived since a moment.
func (s *Share) Log(since time.Time) (calls []Call) {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	for _, c := range s.proxy.calls {
		if c.Arrived.After(since) {
			calls = append(calls, *c)
		}
	}
	return calls
}

// forever is later than all times at which the kernel asks again what may be exported.
const forever = 1<<31 - 1

// Flags of an export (include/uapi/linux/nfsd/export.h).
const (
	insecurePort = 1 << 1 // clients may use any port
	async        = 1 << 4
	noSubtree    = 1 << 10
	isRoot       = 1 << 13 // it has the identifier 0: the root of version 4
)

// serveByKernel has the kernel serve a folder as the root of version 4, without a program of nfs-utils: what mountd
// would answer is written before the kernel asks. It returns the server's address.
func serveByKernel(folder string) (string, error) {
	const files = "/proc/fs/nfsd"
	if err := unix.Mount("nfsd", files, "nfsd", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return "", fmt.Errorf("the kernel's server of NFS is missing: mount %s: %w", files, err)
	}
	threads := files + "/threads"
	text, err := os.ReadFile(threads)
	if err != nil {
		return "", err
	}
	const cache = "/proc/net/rpc/"
	steps := [][2]string{
		{cache + "auth.unix.ip/channel", fmt.Sprintf("nfsd 127.0.0.1 %d all\n", forever)},
		{cache + "nfsd.export/channel", fmt.Sprintf("all %s %d %d 0 0 0\n", folder, forever,
			insecurePort|async|noSubtree|isRoot)},
		{cache + "nfsd.fh/channel", fmt.Sprintf("all 1 \\x00000000 %d %s\n", forever, folder)},
	}
	for _, name := range []string{"auth.unix.ip", "nfsd.export", "nfsd.fh"} { // what was served before
		steps = append([][2]string{{cache + name + "/flush", fmt.Sprint(time.Now().Unix() + 1)}}, steps...)
	}
	if strings.TrimSpace(string(text)) == "0" {
		steps = append(steps, [2]string{files + "/versions", "-3 +4 +4.0 +4.1 +4.2\n"},
			[2]string{files + "/nfsv4leasetime", "10"}, [2]string{files + "/nfsv4gracetime", "10"},
			[2]string{files + "/portlist", "tcp 2049\n"}, [2]string{threads, "16\n"})
	}
	for _, s := range steps {
		if err := os.WriteFile(s[0], []byte(s[1]), 0); err != nil {
			return "", fmt.Errorf("write %q: %w", s[1], err)
		}
	}
	_ = os.WriteFile(files+"/v4_end_grace", []byte("Y\n"), 0) // it may have ended
	return "127.0.0.1:2049", nil
}
