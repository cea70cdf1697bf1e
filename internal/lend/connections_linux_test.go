package lend

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// change is one with all fields.
func change(job string) tcp.Change {
	id := tcp.ID{
		Family: syscall.AF_INET, Local: [16]byte{10, 0, 0, 1}, Remote: [16]byte{10, 0, 0, 2}, LocalPort: 40000,
		RemotePort: 443, Device: 3, Cookie: 1<<63 + 5,
	}
	s := id.Socket()
	s.Received, s.Sent, s.Messages, s.Packets, s.OutOfOrder = 1<<40, 2, 3, 4, 5
	s.MinRTT, s.ReceiveSpace = 6*time.Microsecond, 7
	return tcp.Change{Job: job, Socket: s, Closed: true, Space: 1<<32 - 1}
}

var sockets = cmpopts.EquateComparable(tcp.Socket{})

func TestChanges(t *testing.T) {
	want := []tcp.Change{change("a"), {Job: "b", Socket: change("").Socket}}
	e := encoder{tail: appendChanges(nil, want, true)}
	frame := e.encode(&sample.Schedule{Until: time.Second, Events: []sample.ThreadEvent{full(t, time.Second)}})
	_, tail, err := decode(frame[lengthBytes:], 0)
	if err != nil {
		t.Fatal(err)
	}
	got, all, known, err := decodeChanges(tail)
	if diff := cmp.Diff(want, got, sockets); diff != "" || !all || !known || err != nil {
		t.Errorf("got other changes than were sent, %v, %v, %v (-want +got):\n%s", all, known, err, diff)
	}
	if got, want := got[0].Socket.Remote.String(), "10.0.0.2:443"; got != want {
		t.Errorf("got the peer %s, want %s", got, want)
	}
	for n := 1; n < len(tail); n++ {
		if _, _, _, err := decodeChanges(tail[:n]); !errors.Is(err, errFrame) {
			t.Errorf("the first %d bytes: got %v, want %v", n, err, errFrame)
		}
	}
	if _, _, _, err := decodeChanges(append(tail[:len(tail):len(tail)], 0)); !errors.Is(err, errFrame) {
		t.Errorf("a byte too many: got %v, want %v", err, errFrame)
	}
	if _, _, known, err := decodeChanges(nil); known || err != nil {
		t.Errorf("no changes: got %v, %v, want that they are not known", known, err)
	}
}

// The longest changes fit in a frame.
func TestMostChanges(t *testing.T) {
	c := change(string(make([]byte, maxJob)))
	list := make([]tcp.Change, maxChanges)
	for i := range list {
		list[i] = c
	}
	if n := len(appendChanges(nil, list, true)); n > maxTail {
		t.Errorf("got %d bytes, want at most %d", n, maxTail)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(appendChanges(nil, []tcp.Change{change("a")}, false))
	f.Fuzz(func(t *testing.T, tail []byte) {
		list, all, known, err := decodeChanges(tail)
		if err != nil || !known {
			return
		}
		again, _, _, err := decodeChanges(appendChanges(nil, list, all))
		if err != nil || len(again) != len(list) {
			t.Errorf("got %d changes and %v, want the %d that were decoded", len(again), err, len(list))
		}
	})
}

// connect connects for each line that it reads, and receives until the end.
const connect = `
import socket, sys
for line in sys.stdin:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    while s.recv(65536):
        pass
    s.close()
`

// A plain user's connections are lent: those that open and close between two frames, and no other user's.
func TestConnectionsAreLent(t *testing.T) {
	needsRoot(t)
	if err := schedule.Traceable("", "following"); err != nil {
		t.Skip(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	const times, each = 5, 40_000
	served := make(chan struct{}, 2*times)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(make([]byte, each))
			_ = conn.Close()
			served <- struct{}{}
		}
	}()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	start := func(uid uint32) (pid int, in io.WriteCloser) {
		c := exec.Command("/usr/bin/python3", "-c", connect, host, port)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		c.Stderr = os.Stderr
		in, _ = c.StdinPipe()
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			_ = c.Wait()
		})
		return c.Process.Pid, in
	}
	const own, other = 65534, 65533
	pid, in := start(own)
	foreign, foreignIn := start(other)
	n, err := NewLender(Scheduler(schedule.Local(""))).Admit(Peer{UID: own, GID: own})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.start(); err != nil {
		t.Skip(err)
	}
	obey(t, n, Order{Op: follow, Job: "run", PIDs: []int{pid, foreign}})
	b := &Borrower{link: &link{done: make(chan struct{}), answered: make(chan struct{})}}
	close(b.link.answered)
	frame := func() {
		if err := n.frame(func(frame []byte) error {
			_, tail, err := decode(frame[lengthBytes:], 0)
			if err != nil {
				return err
			}
			list, all, known, err := decodeChanges(tail)
			b.connected(list, all, known)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	frame()
	b.EachConnection(func(*tcp.Change) {}) // of the time before
	for range times {
		_, _ = io.WriteString(in, "\n")
		_, _ = io.WriteString(foreignIn, "\n")
		<-served
		<-served
	}
	var received uint64
	var established, ended int
	all := true
	for end := time.Now().Add(5 * time.Second); ended < times && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		frame()
		all = b.EachConnection(func(c *tcp.Change) {
			if c.Socket.Remote.String() != listener.Addr().String() || c.Job != "run" {
				t.Errorf("got a connection to %v of job %q, want %v of run", c.Socket.Remote, c.Job, listener.Addr())
			}
			if c.Closed {
				received += c.Socket.Received
				ended++
			} else {
				established++
			}
		}) && all
	}
	if ended != times || established != times || received < times*each || received > times*(each+1) || !all {
		t.Errorf("got %d connections established and %d closed with %d bytes, all %v; want %d with %d bytes each",
			established, ended, received, all, times, each)
	}
}
