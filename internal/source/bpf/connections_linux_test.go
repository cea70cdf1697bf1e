//go:build amd64 || arm64

package bpf

import (
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/tcp"
	"github.com/stallspan/stallspan/test/fixture"
)

const awayBytes = 1000

// awayProgram receives something over a connection, and then over one of another network namespace. Both stay open
// until its input ends.
func awayProgram(f facts) {
	receive := func(port string) {
		fd, end, number := connected()
		f[port] = number
		_, err := end.Write(make([]byte, awayBytes))
		must(err)
		_, err = io.ReadFull(os.NewFile(uintptr(fd), port), make([]byte, awayBytes))
		must(err)
	}
	receive("near")
	must(unix.Unshare(unix.CLONE_NEWNET)) // of this thread, which is the only one that connects
	up, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(err)
	lo, err := unix.NewIfreq("lo")
	must(err)
	lo.SetUint16(unix.IFF_UP)
	must(unix.IoctlIfreq(up, unix.SIOCSIFFLAGS, lo))
	receive("away")
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
}

// TestOpenConnectionsOfOtherNamespaces: user space cannot ask for these, so the kernel reports them.
func TestOpenConnectionsOfOtherNamespaces(t *testing.T) {
	s := opened(t, defaults)
	if s.Lacks().Of(OpenConnections) != nil {
		t.Skip("needs BPF for open connections, which this kernel refuses")
	}
	p := fixture.Start(t, "away")
	if err := s.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	open, closed := map[int][]tcp.Change{}, map[int][]tcp.Change{}
	visit := func(c *tcp.Change) {
		to := open
		if c.Closed {
			to = closed
		}
		port := int(c.Socket.Remote.Port())
		to[port] = append(to[port], *c)
	}
	s.EachConnection(visit)
	done := p.Run()
	away := func() (port int, reports []tcp.Change) {
		for port, reports := range open {
			if reports[0].Space != tcp.Namespace() {
				return port, reports
			}
		}
		return 0, nil
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if all := s.EachConnection(visit); !all {
			t.Error("got that changes are missing")
		}
		if _, reports := away(); len(reports) > 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got the reports %+v, want one when it is established and one each second", open)
		}
	}
	p.EndInput()
	f := <-done
	s.EachConnection(visit)

	port, reports := away()
	if last := reports[len(reports)-1]; port != f["away"] || last.Job != "job" || last.Socket.Received != awayBytes {
		t.Errorf("got %+v of port %d; want %d bytes of port %d", last, port, awayBytes, f["away"])
	}
	if n := len(open[f["near"]]); n != 1 {
		t.Errorf("got %d reports of the open connection of this namespace, want the one when it is established", n)
	}
	for _, port := range []int{f["near"], f["away"]} {
		if c := closed[port]; len(c) != 1 || c[0].Socket.Received < awayBytes {
			t.Errorf("port %d: got %+v, want that it was closed, once", port, c)
		}
	}
}
