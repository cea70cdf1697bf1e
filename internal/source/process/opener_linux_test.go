package process

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
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

// followed is the program downloader, whose connections a source watches by the scheduler.
type followed struct {
	*asker
	source *Source
}

// follow starts the program, and reads once before the scheduler follows it.
func follow(t *testing.T, server net.Listener, more ...string) *followed {
	t.Helper()
	return followAsker(t, askWith(t, downloader, server, more...))
}

func followAsker(t *testing.T, program *asker) *followed {
	t.Helper()
	scheduler, err := bpf.New("")
	if err != nil {
		t.Skip("needs BPF: ", err)
	}
	t.Cleanup(func() { _ = scheduler.Close() })
	f := &followed{program, New("")}
	t.Cleanup(f.source.Close)
	f.source.Watch(scheduler)
	pid := f.process.Pid
	if err := f.source.Add("fetch", pid, Options{}); err != nil {
		t.Fatal(err)
	}
	f.read()
	if err := scheduler.Follow("fetch", []int{pid}); err != nil {
		t.Fatal(err)
	}
	return f
}

// read returns the peers of a reading.
func (f *followed) read() []sample.Peer {
	f.Helper()
	s := sample.Sample{Edge: true}
	if err := f.source.Read(&s); err != nil {
		f.Fatal(err)
	}
	return s.Peers
}

// Connections that open and close between two readings are counted. The kernel counts the end of a stream as a byte.
func TestShortConnections(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		t.Run(network, func(t *testing.T) {
			listener := serve(t, network, net.JoinHostPort(host, "0"))
			program := follow(t, listener)
			const times, bytes = 50, 40_000
			for range times {
				program.ask(bytes)
			}
			want := sample.Peer{
				Job: "fetch", Address: listener.Addr().String(),
				Received: times * bytes, Sent: times * 8, Messages: times, Opened: times,
			}
			var got sample.Peer
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if peers := program.read(); len(peers) == 1 {
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
			want.Heard = got.Heard
			if got != want || got.Packets < times || got.MinRTT <= 0 || got.Window == 0 || got.Heard <= 0 {
				t.Errorf("got  %+v\nwant %+v, with packets, a round trip and a window", got, want)
			}
		})
	}
}

// A connection that is reported, listed and read again counts once.
func TestLongConnection(t *testing.T) {
	listener := serve(t, "tcp4", "127.0.0.1:0")
	program := follow(t, listener, "keep")
	var got sample.Peer
	const times, bytes = 5, 40_000
	for range times {
		program.ask(bytes)
		for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if peers := program.read(); len(peers) > 0 {
				got = peers[0]
			}
		}
	}
	want := sample.Peer{
		Job: "fetch", Address: listener.Addr().String(), Received: times * bytes, Sent: times * 8, Messages: times,
		Opened: 1, Connections: 1, Packets: got.Packets, MinRTT: got.MinRTT, Window: got.Window,
		Came: times * bytes, Heard: got.Heard,
	}
	if got != want || got.Heard <= 0 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// apart is a downloader with a server of its own, in a network namespace that this test is not in.
const apart = `
import ctypes, os, socket, subprocess, sys, threading
assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0, "unshare"
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    conn, _ = listener.accept()
    while True:
        size = conn.recv(8, socket.MSG_WAITALL)
        if not size:
            return
        conn.sendall(bytes(int(size)))
threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
s = False
for line in sys.stdin:
    s = s or socket.create_connection(listener.getsockname())
    s.sendall(b"%8d" % int(line))
    got = 0
    while got < int(line):
        got += len(s.recv(1 << 16))
    print(got, flush=True)
`

// An open connection of another network namespace, such as a container's, counts before it is closed.
func TestConnectionOfAnotherNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip: ", err)
	}
	if bpf.Supported("").Of(bpf.OpenConnections) != nil {
		t.Skip("needs BPF for open connections, which this kernel refuses")
	}
	program := followAsker(t, askWith(t, apart, serve(t, "tcp4", "127.0.0.1:0")))
	const times, bytes = 3, 40_000
	var got sample.Peer
	for i := range times {
		program.ask(bytes)
		want := uint64(i+1) * bytes
		for end := time.Now().Add(5 * time.Second); got.Received < want && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
			if peers := program.read(); len(peers) > 0 {
				got = peers[0]
			}
		}
		if got.Received != want || got.Connections != 1 || got.Opened != 1 {
			t.Fatalf("got %+v, want %d bytes on one open connection", got, want)
		}
	}
}
