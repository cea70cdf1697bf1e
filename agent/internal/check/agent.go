package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stallspan/stallspan/internal/api"
)

// agent looks whether one answers on the socket, or a Collector, and who may ask it.
func (m *machine) agent(ctx context.Context) []Finding {
	f := Finding{Area: API, What: "agent", Details: map[string]any{"socket": m.Socket}}
	info, err := os.Lstat(m.Socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{m.noAgent(f)}
	case err != nil:
		f.State, f.Says = Missing, fmt.Sprintf("%s cannot be looked at (%s).", m.Socket, reason(err))
		f.Fix = elsewhere
		if errors.Is(err, fs.ErrPermission) {
			f.Fix = fmt.Sprintf("sudo install -d -m 2750 -g %d %s, and start the agent or the Collector again", os.Getegid(), filepath.Dir(m.Socket))
		}
		return []Finding{f}
	case info.Mode().Type() != fs.ModeSocket:
		f.State, f.Says = Missing, fmt.Sprintf("%s is no socket: an agent or a Collector would leave it alone and refuse to start.", m.Socket)
		f.Fix = elsewhere
		return []Finding{f}
	}
	f.Details["mode"] = fmt.Sprintf("%04o", info.Mode().Perm())
	ctx, cancel := context.WithTimeout(ctx, mostCall)
	defer cancel()
	status, err := api.NewClient(m.Socket).Status(ctx)
	if err != nil {
		return []Finding{m.noAnswer(f, info, err)}
	}
	f.State = Seen
	f.Details["version"], f.Details["uptime_s"], f.Details["windows_open"] = status.Version, status.Uptime, status.WindowsOpen
	f.Says = fmt.Sprintf("Stallspan %s answers on %s, with %s open.", status.Version, m.Socket, number(status.WindowsOpen, "window", "windows"))
	if len(status.Problems) > 0 {
		f.State = Limited
		f.Details["problems"] = status.Problems
		f.Says += " It says: " + status.Problems[0] + "."
	}
	return []Finding{f}
}

// start is a command, which serves the socket; so does a Collector.
const start = "stallspan agent # or a Collector with the receiver stallspan"

const elsewhere = "export " + api.SocketVariable + "=$HOME/.stallspan.sock"

// noAgent is about a path at which there is nothing. An agent need not run.
func (m *machine) noAgent(f Finding) Finding {
	f.State, f.Fix = Off, start
	f.Says = fmt.Sprintf("No agent and no Collector answers at %s: programs can announce windows only inside stallspan run.", m.Socket)
	folder := filepath.Dir(m.Socket)
	for !exists(folder) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder) // an agent makes the folders that are not there
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		f.State, f.Fix = Limited, "chmod o-w "+folder
		f.Says = fmt.Sprintf("No agent can make its socket %s: anyone may replace files in %s.", m.Socket, folder)
	case !mayWrite(folder):
		f.State, f.Fix = Limited, elsewhere
		f.Says = fmt.Sprintf("No agent runs, and this user cannot start one at %s: %s is not theirs to write.", m.Socket, folder)
	}
	return f
}

// noAnswer is about a socket on which there is no agent for this user.
func (m *machine) noAnswer(f Finding, info fs.FileInfo, err error) Finding {
	f.State = Missing
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Says = fmt.Sprintf("What served %s has ended and left its socket: the next one takes it over.", m.Socket)
		f.State, f.Fix = Off, start
	case errors.Is(err, fs.ErrPermission):
		f.Says = fmt.Sprintf("There is a socket at %s, and this user may not ask who answers on it: %s.", m.Socket, mayConnect(info))
		f.Fix = fmt.Sprintf("sudo chgrp %d %s", os.Getegid(), m.Socket)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		f.Says = fmt.Sprintf("What listens on %s does not answer within %v.", m.Socket, mostCall)
		f.Fix = "stop it, and start the agent or the Collector again"
	default:
		f.Says = err.Error() + "."
		f.Fix = elsewhere
	}
	return f
}
