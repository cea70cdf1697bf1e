package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
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
		t.Skipf("needs %s: %v", network, err)
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
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
		t.Skipf("needs python3: %v", err)
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
			began := sample.Now().Mono - 10*time.Millisecond // the kernel counts jiffies, of that at most
			program.ask(200_000)
			program.ask(100_000)
			got := peersOf(t, source, func(p []sample.Peer) bool { return p[0].Received >= 300_000 })[0]
			want := sample.Peer{
				Job: "train", Address: listener.Addr().String(), Received: 300_000, Sent: 16, Messages: 2, Opened: 1,
				Connections: 1, Packets: got.Packets, MinRTT: got.MinRTT, Window: got.Window,
				Came: 350_000, Heard: got.Heard,
			}
			if got != want || got.MinRTT <= 0 || got.Window == 0 || got.Heard <= began || got.Heard > sample.Now().Mono {
				t.Errorf("got  %+v\nwant %+v, with a round trip, a window and when data came", got, want)
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

// A job with more peers than there is room for keeps the sums of the others.
func TestPeersAreBounded(t *testing.T) {
	source := New("")
	defer source.Close()
	const servers = maxJobPeers + 4
	for range servers {
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
	var opened map[bool]uint64
	got := peersOf(t, source, func(p []sample.Peer) bool {
		opened = map[bool]uint64{}
		for i := range p {
			opened[p[i].Accepted] += p[i].Opened
		}
		return opened[false] >= servers && opened[true] >= servers // a server accepts when it gets to run
	})
	if len(got) > maxJobPeers+1 || opened[false] != servers || opened[true] != servers {
		t.Errorf("got %d peers with %d connections opened and %d accepted, want at most %d with %d each: %+v",
			len(got), opened[false], opened[true], maxJobPeers+1, servers, got)
	}
}

// socketTo returns a connection to a server.
func socketTo(server int) *tcp.Socket {
	return &tcp.Socket{Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(server >> 8), byte(server)}), 443)}
}

// Jobs of one client do not take the room of others. Each job has a peer of its own, and what finds no room counts.
func TestClientsShareRoom(t *testing.T) {
	c := newConnections()
	defer c.close()
	var jobs []*job
	named := func(j *job) (n int) {
		for _, p := range c.peers {
			if p.job == j && !strings.HasPrefix(p.Address, "*:") {
				n++
			}
		}
		return n
	}
	add := func(client string) *job {
		j := newJob(fmt.Sprintf("%s-%d", client, len(jobs)), 1)
		j.client = client
		jobs = append(jobs, j)
		for server := range 3 * maxJobPeers {
			s := socketTo(server)
			s.Received = 1000
			c.begin(j, s, &tcp.Socket{}, false)
		}
		return j
	}
	for range 20 {
		add("greedy")
	}
	if got := named(add("modest")); got < maxJobPeers/2 {
		t.Errorf("a second client's job has %d peers of its own, want at least %d", got, maxJobPeers/2)
	}
	for range MaxJobs - len(jobs) {
		add("more")
	}
	for _, j := range jobs {
		var received uint64
		for _, p := range c.peers {
			if p.job == j {
				received += p.Received
			}
		}
		if named(j) == 0 || received != 3*maxJobPeers*1000 {
			t.Errorf("%s: %d peers of its own, %d bytes received, want at least 1 and %d", j.id, named(j), received,
				3*maxJobPeers*1000)
		}
	}
	if most := maxPeers + 2*MaxJobs; len(c.peers) > most {
		t.Errorf("got %d peers, want at most %d", len(c.peers), most)
	}
}

// A peer that is idle makes room for another one, unless a connection to it is open. Its bytes stay in the job's sum.
func TestIdlePeersMakeRoom(t *testing.T) {
	c := newConnections()
	defer c.close()
	j := newJob("fetch", 1)
	c.now = time.Hour
	for server := range maxJobPeers {
		s := socketTo(server)
		s.Received = 1000
		one := c.begin(j, s, &tcp.Socket{}, false)
		if server == 0 {
			c.open = append(c.open, one)
		}
	}
	c.now += idlePeer - 1
	c.begin(j, socketTo(100), &tcp.Socket{}, false)
	if c.peerNamed(j, "10.0.0.100:443", false) != nil {
		t.Error("there was room for another peer although none was idle for long")
	}
	c.now++
	c.begin(j, socketTo(101), &tcp.Socket{}, false)
	if c.peerNamed(j, "10.0.0.101:443", false) == nil {
		t.Error("there was no room for another peer although others were idle")
	}
	if c.peerNamed(j, "10.0.0.0:443", false) == nil || c.peerNamed(j, "10.0.0.1:443", false) != nil {
		t.Error("the peer that was removed is not the one that is idle for longest without a connection")
	}
	var sum uint64
	for _, p := range c.peers {
		sum += p.Received + p.PastReceived
	}
	if sum != maxJobPeers*1000 {
		t.Errorf("the job has received %d bytes, want %d as before", sum, maxJobPeers*1000)
	}
}

// cutOff are sockets whose first lists fail.
type cutOff struct {
	sockets
	lists int
}

func (f *cutOff) List(visit func(*tcp.Socket)) error {
	if f.lists--; f.lists >= 0 {
		return errors.New("cut off")
	}
	return f.sockets.List(visit)
}

// A connection is found after a list that failed, and what it moved since the job is followed counts.
func TestListFails(t *testing.T) {
	listener := serve(t, "tcp4", "127.0.0.1:0")
	program := askWith(t, client, listener)
	program.ask(50_000) // before the job is followed
	source := New("")
	defer source.Close()
	source.connections.source = &cutOff{source.connections.source, 2}
	if err := source.Add("train", program.process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	var got []sample.Peer
	failures := 0
	for end := time.Now().Add(10 * time.Second); len(got) == 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		s := sample.Sample{Edge: true}
		if source.Read(&s) != nil {
			failures++
		}
		got = s.Peers
	}
	if len(got) != 1 || got[0].Received != 0 || failures != 2 {
		t.Fatalf("got %+v after %d failures, want one peer after 2, without what it had sent before", got, failures)
	}
}

// A connection that was not established when it was looked for is found later, with all that it moved.
func TestConnecting(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(unix.Bind(fd, at), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, _ := unix.Getsockname(fd)
	address := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	full, err := net.Dial("tcp4", address) // the queue has room for one
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	connected := make(chan net.Conn, 1)
	go func() {
		conn, _ := net.Dial("tcp4", address)
		connected <- conn
	}()
	time.Sleep(100 * time.Millisecond)
	source := New("")
	defer source.Close()
	if err := source.Add("fetch", os.Getpid(), Options{}); err != nil {
		t.Fatal(err)
	}
	peersOf(t, source, func(p []sample.Peer) bool { return len(p) > 0 })
	select {
	case <-connected:
		t.Skip("the kernel has room for a second connection")
	default:
	}
	for range 2 {
		accepted, _, err := unix.Accept(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(accepted) }()
		if _, err := unix.Write(accepted, make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	conn := <-connected
	defer func() { _ = conn.Close() }()
	peersOf(t, source, func(p []sample.Peer) bool {
		for _, one := range p {
			if !one.Accepted && one.Address == address {
				return one.Opened == 2 && one.Received == 10000
			}
		}
		return false
	})
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
