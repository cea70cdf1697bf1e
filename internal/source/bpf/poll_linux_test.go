//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// connected returns a descriptor that is connected to the other end that it returns, with that end's port.
func connected() (fd int, end net.Conn, port int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	client, err := net.Dial("tcp4", listener.Addr().String())
	must(err)
	end, err = listener.Accept()
	must(err)
	file, err := client.(*net.TCPConn).File()
	must(err)
	fd, err = unix.Dup(int(file.Fd()))
	must(err)
	return fd, end, end.LocalAddr().(*net.TCPAddr).Port
}

// pollProgram waits for the second of three connections, with poll and epoll, and for one alone.
func pollProgram(f facts) {
	var fds []unix.PollFd
	var ends []net.Conn
	epoll, err := unix.EpollCreate1(0)
	must(err)
	for i := range 3 {
		fd, end, port := connected()
		fds, ends = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(ends, end)
		must(unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		if i == 1 {
			f["port"] = port
		}
	}
	wait := func(name string, f facts, first uintptr, until func()) {
		tid, wait := thread(until)
		f[name] = tid
		untilIn(tid, first)
		time.Sleep(20 * time.Millisecond) // what ends shorter waits is not reported
		_, err := ends[1].Write([]byte{0})
		must(err)
		wait()
		_, err = unix.Read(int(fds[1].Fd), make([]byte, 1))
		must(err)
	}
	wait("poll", f, uintptr(unsafe.Pointer(&fds[0])), func() { _, err := unix.Poll(fds, -1); must(err) })
	wait("alone", f, uintptr(unsafe.Pointer(&fds[1])), func() { _, err := unix.Poll(fds[1:2], -1); must(err) })
	wait("epoll", f, uintptr(epoll), func() { _, err := unix.EpollWait(epoll, make([]unix.EpollEvent, 3), -1); must(err) })
}

// A wait for several files shows which one ended it.
func TestPoll(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "poll")
	checkChain(t, events)
	want := fmt.Sprintf("127.0.0.1:%d over TCP", f["port"])
	for _, name := range []string{"poll", "epoll", "alone"} {
		own := of(events, f[name])
		at := slices.IndexFunc(own, func(e sample.ThreadEvent) bool { return e.Peer != "" })
		if at < 0 {
			t.Errorf("%s: got no peer, want %s", name, want)
			continue
		}
		e, next := own[at], own[at+1]
		kind := sample.ThreadFound
		if name == "alone" {
			kind = sample.ThreadOut
		}
		if e.Kind != kind || e.Peer != want || next.Kind != sample.ThreadIn || kind == sample.ThreadFound && next.At != e.At {
			t.Errorf("%s: got %+v and then %+v, want an event of kind %d with peer %s just before the thread's CPU",
				name, e, next, kind, want)
		}
	}
}
