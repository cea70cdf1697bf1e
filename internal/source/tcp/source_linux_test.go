package tcp

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// connect returns both ends of a real connection over loopback.
func connect(t testing.TB, network string, host string) (client, server *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen(network, host)
	if err != nil {
		t.Skipf("needs %s: %v", network, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	one, err := net.Dial(network, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = one.Close(), other.Close() })
	return one.(*net.TCPConn), other.(*net.TCPConn)
}

// inode returns the number of a socket as /proc shows it.
func inode(t testing.TB, conn *net.TCPConn) uint32 {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number uint64
	_ = raw.Control(func(fd uintptr) {
		name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd)))
		number, err = strconv.ParseUint(strings.Trim(name, "socket:[]"), 10, 32)
	})
	if err != nil {
		t.Fatal(err)
	}
	return uint32(number)
}

func find(t testing.TB, s *Source, number uint32) *Socket {
	t.Helper()
	var found *Socket
	if err := s.List(func(one *Socket) {
		if one.Inode == number {
			copied := *one
			found = &copied
		}
	}); err != nil {
		t.Fatal(err)
	}
	if found == nil {
		t.Fatalf("got no socket %d", number)
	}
	return found
}

func TestConnection(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			client, server := connect(t, network, host)
			source := New()
			t.Cleanup(source.Close)
			const requested, answered, read = 100, 60_000, 20_000
			before := find(t, source, inode(t, client))
			if before.Received != 0 || before.Listening {
				t.Fatalf("got %+v before any data", before)
			}
			if _, err := client.Write(make([]byte, requested)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(server, make([]byte, requested)); err != nil {
				t.Fatal(err)
			}
			written := make(chan error, 1)
			go func() {
				_, err := server.Write(make([]byte, answered))
				written <- err
			}()
			if _, err := io.ReadFull(client, make([]byte, read)); err != nil {
				t.Fatal(err)
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			got := find(t, source, inode(t, client))
			for end := time.Now().Add(5 * time.Second); got.Received < answered && time.Now().Before(end); {
				if open, err := source.Refresh(got); !open || err != nil { // the rest waits in the sender's buffer
					t.Fatalf("got %v, %v of an open connection", open, err)
				}
			}
			want := Socket{
				Cookie: before.Cookie, Inode: before.Inode,
				Local:    netip.MustParseAddrPort(client.LocalAddr().String()),
				Remote:   netip.MustParseAddrPort(client.RemoteAddr().String()),
				Received: answered, Sent: requested, Messages: 1,
				counts: true, family: got.family, id: got.id,
				Packets: got.Packets, RTT: got.RTT, MinRTT: got.MinRTT, ReceiveSpace: got.ReceiveSpace,
				Silent: got.Silent,
			}
			if *got != want {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
			if got.Packets == 0 || got.RTT <= 0 || got.ReceiveSpace == 0 {
				t.Errorf("got %d packets, a round trip of %v and a window of %d, want more than 0",
					got.Packets, got.RTT, got.ReceiveSpace)
			}
			if other := find(t, source, inode(t, server)); other.Received != requested || other.Remote != got.Local {
				t.Errorf("got %+v of the other end", other)
			}
		})
	}
}

func TestRefreshClosed(t *testing.T) {
	client, server := connect(t, "tcp4", "127.0.0.1:0")
	source := New()
	defer source.Close()
	socket := find(t, source, inode(t, client))
	_, _ = server.Close(), client.Close()
	for end := time.Now().Add(5 * time.Second); ; {
		open, err := source.Refresh(socket)
		if err != nil {
			t.Fatal(err)
		}
		if !open {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %+v of a closed connection", socket)
		}
	}
	other, _ := connect(t, "tcp4", "127.0.0.1:0") // the source still works
	find(t, source, inode(t, other))
}

func TestListening(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	source := New()
	defer source.Close()
	local := netip.MustParseAddrPort(listener.Addr().String())
	found := false
	if err := source.List(func(s *Socket) { found = found || s.Listening && s.Local == local }); err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("got no listening socket %v", local)
	}
}

func FuzzParse(f *testing.F) {
	var message [headSize + messageSize]byte
	order.PutUint32(message[0:], uint32(len(message)))
	order.PutUint16(message[4:], byFamily)
	order.PutUint32(message[8:], 1)
	message[headSize], message[headSize+1] = 2, 1
	f.Add(message[:])
	f.Add(append(message[:], 8, 0, 2, 0, 1, 2, 3, 4))
	f.Add([]byte{20, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, piece []byte) {
		most := len(piece) / (headSize + messageSize)
		seen := 0
		if _, err := parse(piece, 1, func(*Socket) { seen++ }); err == nil && seen > most {
			t.Errorf("got %d sockets of %d bytes", seen, len(piece))
		}
	})
}

func BenchmarkList(b *testing.B) {
	for range 100 {
		connect(b, "tcp4", "127.0.0.1:0")
	}
	source := New()
	defer source.Close()
	sockets := 0
	b.ReportAllocs()
	for b.Loop() {
		sockets = 0
		if err := source.List(func(*Socket) { sockets++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sockets), "sockets")
}

func BenchmarkRefresh(b *testing.B) {
	client, _ := connect(b, "tcp4", "127.0.0.1:0")
	source := New()
	defer source.Close()
	socket := find(b, source, inode(b, client))
	b.ReportAllocs()
	for b.Loop() {
		if open, err := source.Refresh(socket); !open || err != nil {
			b.Fatalf("got %v, %v; want an open connection", open, err)
		}
	}
}
