package moments

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPeers looks up real sockets of this process.
func TestPeers(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), network, "localhost:0")
		if err != nil {
			t.Logf("%s: %v", network, err)
			continue
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		want := l.Addr().String() + " over TCP"
		var p peers
		for range 2 { // read, and known
			if got := p.of(unix.Getpid(), inodeOf(t, raw)); got != want {
				t.Errorf("%s: got %q, want %q", network, got, want)
			}
		}
		if len(p.known) != 1 {
			t.Errorf("%s: got %v, want one known socket", network, p.known)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := lookUp("/proc/self/net/", 1<<62); got != "" {
		t.Errorf("no socket: got %q", got)
	}
}

func inodeOf(t *testing.T, raw interface{ Control(func(uintptr)) error }) (inode uint64) {
	t.Helper()
	if err := raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		if err := unix.Fstat(int(fd), &stat); err != nil {
			t.Error(err)
		}
		inode = stat.Ino
	}); err != nil {
		t.Fatal(err)
	}
	return inode
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1D13":                          "127.0.0.1:7443",
		"B80D01200000000000000000010000 00:01BB": "",
		"B80D0120000000000000000001000000:01BB":  "[2001:db8::1]:443",
		"0000000000000000FFFF00000700000A:01BB":  "10.0.0.7:443",
		"00000000:0000":                          "",
		"":                                       "",
		"0100007F":                               "",
		"01:01":                                  "",
	} {
		if got := address(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	const unixTable = "Num RefCount Protocol Flags Type St Inode Path\n" +
		"0000: 00000002 00000000 00010000 0001 01 4711 /run/x\n"
	if got := find(strings.NewReader(unixTable), "unix", []byte("4711")); got != "unix" {
		t.Errorf("got %q, want unix", got)
	}
	if got := find(strings.NewReader(unixTable), "unix", []byte("471")); got != "" {
		t.Errorf("part of an inode: got %q", got)
	}
}
