package process

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
)

// client is a program that asks a server for data each time that it reads a line: how much.
const client = `
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
keep = socket.create_connection((host, port))
print("ready", flush=True)
for line in sys.stdin:
    wanted = int(line)
    s = keep if wanted > 0 else socket.create_connection((host, port))
    s.sendall(b"%8d" % abs(wanted))
    got = 0
    while got < abs(wanted):
        got += len(s.recv(1 << 16))
    if s is not keep:
        s.close()
    print(got, flush=True)
`

// serve answers each request of 8 bytes with as many bytes as it says.
func serve(t *testing.T, network, host string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, host)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
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
	}()
	return listener
}

// peersOf reads until a reading has peers that fit.
func peersOf(t *testing.T, source *Source, fits func([]sample.Peer) bool) []sample.Peer {
	t.Helper()
	var last []sample.Peer
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s := sample.Sample{Edge: true}
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
		if len(s.Peers) > 0 {
			last = s.Peers
		}
		if len(last) > 0 && fits(last) {
			return last
		}
	}
	t.Fatalf("got peers %+v", last)
	return nil
}

// asker is a Python program that fetches as many bytes as a line says.
type asker struct {
	*testing.T
	process *os.Process
	in      io.WriteCloser
	answers *bufio.Reader // Python may write a line in two pieces
}

// askWith starts a program with the address of a server and further arguments, and waits until it is ready.
func askWith(t *testing.T, program string, server net.Listener, more ...string) *asker {
	t.Helper()
	host, port, _ := net.SplitHostPort(server.Addr().String())
	command := exec.Command("/usr/bin/python3", append([]string{"-c", program, host, port}, more...)...)
	command.Stderr = os.Stderr
	in, _ := command.StdinPipe()
	out, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		t.Skipf("python3 is missing: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	a := &asker{t, command.Process, in, bufio.NewReader(out)}
	a.wait()
	return a
}

func (a *asker) wait() {
	a.Helper()
	if _, err := a.answers.ReadString('\n'); err != nil {
		a.Fatal(err)
	}
}

// ask makes the program fetch n bytes.
func (a *asker) ask(n int) {
	a.Helper()
	_, _ = io.WriteString(a.in, strconv.Itoa(n)+"\n")
	a.wait()
}

func TestPeers(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		t.Run(network, func(t *testing.T) {
			listener := serve(t, network, net.JoinHostPort(host, "0"))
			program := askWith(t, client, listener)
			program.ask(50_000) // before the job is followed
			source := New("")
			defer source.Close()
			if err := source.Add("train", program.process.Pid, Options{}); err != nil {
				t.Fatal(err)
			}
			peersOf(t, source, func(p []sample.Peer) bool { return len(p) == 1 })
			program.ask(200_000)
			program.ask(100_000)
			got := peersOf(t, source, func(p []sample.Peer) bool { return p[0].Received >= 300_000 })[0]
			want := sample.Peer{
				Job: "train", Address: listener.Addr().String(), Received: 300_000, Sent: 16, Messages: 2, Opened: 1,
				Connections: 1, Packets: got.Packets, MinRTT: got.MinRTT, Window: got.Window,
			}
			if got != want || got.MinRTT <= 0 || got.Window == 0 {
				t.Errorf("got  %+v\nwant %+v, with a round trip and a window", got, want)
			}
			// A connection that is closed is counted; what it moved since the last reading is not.
			before := got
			for range 3 {
				program.ask(-70_000)
			}
			_ = program.in.Close()
			got = peersOf(t, source, func(p []sample.Peer) bool { return p[0].Closed >= 1 })[0]
			if more := got.Received - before.Received; more > 210_000 || got.Connections != 0 {
				t.Errorf("got %d more bytes on %d connections, want at most 210000 on none", more, got.Connections)
			}
			source.Remove("train")
			if n := len(source.connections.open) + len(source.connections.peers) + len(source.connections.wanted); n != 0 {
				t.Errorf("got %d connections and peers of a job that was removed, want none", n)
			}
		})
	}
}

// Those that connect to the job are not those that it connects to.
func TestAccepted(t *testing.T) {
	source := New("")
	defer source.Close()
	listener := serve(t, "tcp4", "127.0.0.1:0") // this program is the server
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := source.Add("server", os.Getpid(), Options{}); err != nil {
		t.Fatal(err)
	}
	got := peersOf(t, source, func(p []sample.Peer) bool { return len(p) >= 2 })
	for _, p := range got {
		if p.Address != listener.Addr().String() {
			t.Errorf("got peer %+v, want address %v", p, listener.Addr())
		}
	}
	if len(got) != 2 || got[0].Accepted == got[1].Accepted {
		t.Errorf("got %+v, want one that connected and one that was connected to", got)
	}
}

// A job with more peers than there is room for keeps the sums of the others, and no job takes the room of all.
func TestPeersAreBounded(t *testing.T) {
	source := New("")
	defer source.Close()
	for range maxJobPeers + 4 {
		listener := serve(t, "tcp4", "127.0.0.1:0")
		conn, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if err := source.Add("many", os.Getpid(), Options{}); err != nil {
		t.Fatal(err)
	}
	if got := peersOf(t, source, func(p []sample.Peer) bool { return len(p) >= maxJobPeers-1 }); len(got) > maxJobPeers {
		t.Errorf("got %d peers, want at most %d", len(got), maxJobPeers)
	}
}

// A job without connections costs nothing: the kernel is not asked.
func TestNoSocketsNoQuestions(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	source := New("")
	defer source.Close()
	if err := source.Add("sleep", sleeper.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s := sample.Sample{Edge: true}
		if err := source.Read(&s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if c := source.connections; c.readAt != 0 || c.listAt != 0 {
		t.Errorf("got a reading at %v and a list at %v, want neither", c.readAt, c.listAt)
	}
}
