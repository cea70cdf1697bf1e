package process_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// downloader connects for each line that it reads, or once with a third argument, and fetches as many bytes as it says.
const downloader = `
import socket, sys
print("ready", flush=True)
s = False
for line in sys.stdin:
    if not s:
        s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    s.sendall(b"%8d" % int(line))
    got = 0
    while got < int(line):
        got += len(s.recv(1 << 16))
    if len(sys.argv) == 3:
        s.close()
        s = False
    print(got, flush=True)
`

// answer serves requests of 8 bytes with as many bytes as they say.
func answer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			for request := make([]byte, 8); ; {
				if _, err := io.ReadFull(conn, request); err != nil {
					return
				}
				n, _ := strconv.Atoi(strings.TrimSpace(string(request)))
				if _, err := conn.Write(make([]byte, n)); err != nil {
					return
				}
			}
		}()
	}
}

// Connections that open and close between two readings are counted. The kernel counts the end of a stream as a byte.
func TestShortConnections(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		t.Run(network, func(t *testing.T) {
			scheduler, err := schedule.New("")
			if err != nil {
				t.Skip(err)
			}
			defer func() { _ = scheduler.Close() }()
			listener, err := net.Listen(network, net.JoinHostPort(host, "0"))
			if err != nil {
				t.Skip(err)
			}
			defer func() { _ = listener.Close() }()
			go answer(listener)
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			command := exec.Command("/usr/bin/python3", "-c", downloader, host, port)
			command.Stderr = os.Stderr
			in, _ := command.StdinPipe()
			out, _ := command.StdoutPipe()
			if err := command.Start(); err != nil {
				t.Skipf("python3 is missing: %v", err)
			}
			defer func() {
				_ = in.Close()
				_ = command.Wait()
			}()
			lines := bufio.NewReader(out)
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			source := process.New("")
			defer source.Close()
			source.Watch(scheduler)
			source.WatchConnections(scheduler)
			pid := command.Process.Pid
			if err := source.Add("fetch", pid, process.Options{}); err != nil {
				t.Fatal(err)
			}
			read := func() []sample.Peer {
				s := sample.Sample{Edge: true}
				if err := source.Read(&s); err != nil {
					t.Fatal(err)
				}
				return s.Peers
			}
			read()
			if err := scheduler.Follow("fetch", []int{pid}); err != nil {
				t.Fatal(err)
			}
			const times, bytes = 50, 40_000
			for range times {
				_, _ = io.WriteString(in, strconv.Itoa(bytes)+"\n")
				if _, err := lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			want := sample.Peer{
				Job: "fetch", Address: listener.Addr().String(),
				Received: times * bytes, Sent: times * 8, Messages: times, Opened: times,
			}
			var got sample.Peer
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if peers := read(); len(peers) == 1 {
					got = peers[0]
				}
				if got.Received >= want.Received && got.Connections == 0 {
					break
				}
			}
			if end := got.Received - want.Received; end <= times {
				want.Received += end
			}
			want.Packets, want.OutOfOrder, want.MinRTT, want.Window = got.Packets, got.OutOfOrder, got.MinRTT, got.Window
			if got != want || got.Packets < times || got.MinRTT <= 0 || got.Window == 0 {
				t.Errorf("got  %+v\nwant %+v, with packets, a round trip and a window", got, want)
			}
		})
	}
}

// A connection that is reported, listed and read again counts once.
func TestLongConnection(t *testing.T) {
	scheduler, err := schedule.New("")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = scheduler.Close() }()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = listener.Close() }()
	go answer(listener)
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	command := exec.Command("/usr/bin/python3", "-c", downloader, host, port, "keep")
	command.Stderr = os.Stderr
	in, _ := command.StdinPipe()
	out, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Skipf("python3 is missing: %v", err)
	}
	defer func() {
		_ = in.Close()
		_ = command.Wait()
	}()
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	source := process.New("")
	defer source.Close()
	source.Watch(scheduler)
	source.WatchConnections(scheduler)
	if err := source.Add("fetch", command.Process.Pid, process.Options{}); err != nil {
		t.Fatal(err)
	}
	var got sample.Peer
	read := func() {
		s := sample.Sample{Edge: true}
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
		if len(s.Peers) > 0 {
			got = s.Peers[0]
		}
	}
	read()
	if err := scheduler.Follow("fetch", []int{command.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	const times, bytes = 5, 40_000
	for range times {
		_, _ = io.WriteString(in, strconv.Itoa(bytes)+"\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			read()
		}
	}
	want := sample.Peer{
		Job: "fetch", Address: listener.Addr().String(), Received: times * bytes, Sent: times * 8, Messages: times,
		Opened: 1, Connections: 1, Packets: got.Packets, MinRTT: got.MinRTT, Window: got.Window,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
