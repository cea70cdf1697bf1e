package moments

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// peers names the other ends of sockets, from the tables in /proc/PID/net.
type peers struct {
	known map[uint64]string // by inode
	next  time.Duration     // no table is read before
}

const (
	maxPeers   = 1024
	maxTable   = 1 << 20 // bytes; a machine with more connections than fit has some without a name
	peerShare  = 100     // a table that has not the socket is not read again for so many times as that took
	foundShare = 10      // and one that has it
)

// tables are files of /proc/PID/net with a socket on each line, and what their names end in.
var tables = []struct{ name, protocol string }{
	{"tcp", " over TCP"}, {"tcp6", " over TCP"}, {"udp", " over UDP"}, {"udp6", " over UDP"}, {"unix", ""},
}

// of returns the other end of a socket of a process: "10.0.0.7:443 over TCP" or "unix"; "" if it is not known.
func (p *peers) of(pid int, inode uint64) string {
	if text := p.known[inode]; text != "" {
		return text
	}
	began := sample.Now().Mono
	if began < p.next {
		return ""
	}
	text := lookUp("/proc/"+strconv.Itoa(pid)+"/net/", inode)
	took := sample.Now().Mono - began
	if p.next = began + foundShare*took; text == "" {
		p.next = began + peerShare*took
		return ""
	}
	if p.known == nil || len(p.known) >= maxPeers {
		p.known = map[uint64]string{}
	}
	p.known[inode] = text
	return text
}

func lookUp(folder string, inode uint64) string {
	wanted := []byte(strconv.FormatUint(inode, 10))
	for _, t := range tables {
		file, err := os.Open(folder + t.name)
		if err != nil {
			continue
		}
		text := find(io.LimitReader(file, maxTable), t.name, wanted)
		_ = file.Close()
		if text != "" {
			return text + t.protocol
		}
	}
	return ""
}

// find returns the other end of the socket with an inode.
func find(table io.Reader, name string, inode []byte) string {
	const remote, inetInode, unixInode = 2, 9, 6 // fields
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if !bytes.Contains(lines.Bytes(), inode) {
			continue
		}
		fields := bytes.Fields(lines.Bytes())
		switch {
		case name == "unix" && len(fields) > unixInode && bytes.Equal(fields[unixInode], inode):
			return "unix"
		case name != "unix" && len(fields) > inetInode && bytes.Equal(fields[inetInode], inode):
			return address(string(fields[remote]))
		}
	}
	return ""
}

// address reads an address and a port: "0700000A:01BB". Each four bytes are a number of this machine.
func address(text string) string {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, failed := strconv.ParseUint(port, 16, 16)
	if err != nil || failed != nil || number == 0 || len(raw)%4 != 0 {
		return ""
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return ""
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)).String()
}
