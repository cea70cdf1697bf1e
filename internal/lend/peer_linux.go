package lend

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// Peer is who has connected to the server's socket.
type Peer struct {
	UID, GID uint32
	// All reports whether it may have the events of any process: it is root, with the right to trace.
	All bool
}

// PeerOf returns who connected. A process in a container is refused: its numbers of processes mean others here.
func PeerOf(c *net.UnixConn) (Peer, error) {
	var peer Peer
	who, err := trust.PeerOf(c)
	if err != nil {
		return peer, fmt.Errorf("the kernel does not show who asks, use a unix socket: %w", err)
	}
	peer.UID, peer.GID = who.UID, who.GID
	pidfd := trust.PeerFD(c)
	exact := pidfd >= 0
	if !exact {
		if pidfd, err = unix.PidfdOpen(who.PID, 0); err != nil {
			return peer, fmt.Errorf("process %d cannot be examined, ask from a process of this machine: %w", who.PID, err)
		}
	}
	defer func() { _ = unix.Close(pidfd) }()
	foreign, err := inContainer(pidfd)
	if err != nil {
		return peer, fmt.Errorf("process %d cannot be examined, ask from a process that lives on: %w", who.PID, err)
	}
	if foreign {
		return peer, errors.New("a container numbers its processes otherwise: share the host's PID namespace with it")
	}
	if peer.UID == 0 && exact {
		i, err := identify("/proc", who.PID)
		peer.All = err == nil && i.root() && alive(pidfd)
	}
	return peer, nil
}

// inContainer reports whether a process lives in a PID namespace below ours, from its numbers in all of them.
func inContainer(pidfd int) (bool, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(numbers)
			if len(fields) == 0 || fields[0] == "0" || fields[0] == "-1" {
				return false, unix.ESRCH
			}
			return len(fields) > 1, nil
		}
	}
	return false, errors.New("the kernel does not show its PID namespace")
}

// alive reports whether the process of a pidfd still runs.
func alive(pidfd int) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 0
}

// identity is what /proc shows of a process's rights.
type identity struct {
	uids, gids           [3]uint32 // real, effective and saved
	permitted, effective uint64    // capabilities
	owner                uint32    // of the files in /proc/PID: root if it is not dumpable (PR_SET_DUMPABLE, prctl(2))
}

// root reports whether a process is root and may trace others.
func (i *identity) root() bool {
	return i.uids == [3]uint32{} && i.effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// mayHave reports whether a peer may have the events of a process.
func (p *Peer) mayHave(i *identity) bool {
	return p.All || i.uids == [3]uint32{p.UID, p.UID, p.UID} && i.gids == [3]uint32{p.GID, p.GID, p.GID} &&
		i.permitted == 0 && i.owner == p.UID
}

// identify reads the rights of a process below proc.
func identify(proc string, pid int) (identity, error) {
	var i identity
	dir := filepath.Join(proc, strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return i, err
	}
	if i.owner, err = ownerOf(proc, pid); err != nil {
		return i, err
	}
	return i, i.parse(text)
}

// ownerOf returns the owner of the files of a process: its effective user if it is dumpable, else root.
func ownerOf(proc string, pid int) (uint32, error) {
	var info unix.Stat_t
	if err := unix.Stat(filepath.Join(proc, strconv.Itoa(pid), "stat"), &info); err != nil {
		return 0, err
	}
	return info.Uid, nil
}

// parse reads the lines Uid, Gid, CapPrm and CapEff of /proc/PID/status (proc_pid_status(5)).
func (i *identity) parse(status []byte) error {
	found := 0
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		var err error
		switch key {
		case "Uid":
			err = parseIDs(value, &i.uids)
		case "Gid":
			err = parseIDs(value, &i.gids)
		case "CapPrm":
			i.permitted, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		case "CapEff":
			i.effective, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		default:
			continue
		}
		if err != nil {
			return err
		}
		found++
	}
	const wanted = 4
	if found != wanted {
		return fmt.Errorf("got %d of the lines Uid, Gid, CapPrm and CapEff, want each once", found)
	}
	return nil
}

// parseIDs reads the real, the effective and the saved of four ids. The fourth, of the file system, follows the second.
func parseIDs(text string, ids *[3]uint32) error {
	fields := strings.Fields(text)
	if len(fields) < len(ids) {
		return fmt.Errorf("got the ids %q, want four", text)
	}
	for k := range ids {
		id, err := strconv.ParseUint(fields[k], 10, 32)
		if err != nil {
			return err
		}
		ids[k] = uint32(id)
	}
	return nil
}
