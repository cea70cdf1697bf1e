package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/trust"
)

// agent checks whether an agent or a Collector answers on the socket, and who may connect.
func (m *machine) agent(ctx context.Context) []Finding {
	f := Finding{Area: API, What: "agent", Details: map[string]any{"socket": m.Socket}}
	info, err := os.Lstat(m.Socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m.noAgent(f)
	case errors.Is(err, fs.ErrPermission):
		folder := trust.Closed(m.Socket)
		return f.as(Missing, fmt.Sprintf("sudo setfacl -m u:%d:x %s, then check again", os.Geteuid(), quoted(folder)),
			"%s cannot be entered by this user: it is not known whether an agent runs there.", folder)
	case err != nil:
		return f.as(Missing, elsewhere, "%s cannot be accessed (%s).", m.Socket, reason(err))
	case info.Mode().Type() != fs.ModeSocket:
		return f.as(Missing, elsewhere, "%s is not a socket: an agent or a Collector refuses to start there.", m.Socket)
	}
	f.Details["mode"] = fmt.Sprintf("%04o", info.Mode().Perm())
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	status, err := api.NewClient(m.Socket).Status(ctx)
	if err != nil {
		return m.noAnswer(f, info, err)
	}
	f.Details["version"], f.Details["uptime_s"] = status.Version, status.Uptime
	f.Details["windows_open"], f.Details["late_readings"] = status.WindowsOpen, status.LateReadings
	f.State = Seen
	f.Message = fmt.Sprintf("Stallspan %s answers on %s, with %s open. It has run for %v, and reads %s and %s.",
		status.Version, m.Socket, output.Count(status.WindowsOpen, "window"),
		time.Duration(status.Uptime)*time.Second,
		output.Count(len(status.Disks), "disk"), output.Count(len(status.GPUs), "GPU"))
	if len(status.Problems) > 0 {
		f.State, f.Details["problems"] = Limited, status.Problems
		f.Message += fmt.Sprintf(" Its first warning: %s.", status.Problems[0])
	}
	if status.Export == nil {
		return []Finding{f}
	}
	return append([]Finding{f}, exportOf(status.Export)...)
}

// agentExport is the subject of what an agent says of its export.
const agentExport = "agent's export"

// exportOf says what becomes of an agent's telemetry.
func exportOf(e *api.ExportStatus) []Finding {
	f := Finding{Area: Export, What: agentExport, Details: map[string]any{"export": e}}
	switch {
	case e.Failing != "":
		return f.as(Limited, "start the backend, or correct OTEL_EXPORTER_OTLP_ENDPOINT of the agent and restart it",
			"The agent's telemetry does not arrive: %s.", e.Failing)
	case e.Enabled:
		return f.as(Seen, "", "The agent's telemetry arrives; it has lost %d spans and log records.", e.Lost)
	}
	return f.as(Off, "set OTEL_EXPORTER_OTLP_ENDPOINT for the agent, and restart it",
		"The agent exports no telemetry: no OTLP backend is set for it.")
}

// start is the command that serves the socket. A Collector does, too.
const start = "stallspan agent # or a Collector with the receiver stallspan"

const elsewhere = "export " + api.SocketVariable + "=$HOME/.stallspan.sock"

// noAgent is the finding for a path without a socket. An agent is optional.
func (m *machine) noAgent(f Finding) []Finding {
	folder := filepath.Dir(m.Socket)
	for !exists(folder) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder) // an agent makes missing folders
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return f.as(Limited, "chmod o-w "+quoted(folder),
			"No agent can create its socket %s: anyone may replace files in %s.", m.Socket, folder)
	case syscall.Access(folder, 2|1) != nil: // no file can be made in it
		return f.as(Limited, elsewhere,
			"No agent runs, and this user cannot start one at %s: no permission to write to %s.", m.Socket, folder)
	}
	return f.as(Off, start, "No agent or Collector runs at %s: programs can announce windows only inside stallspan run.",
		m.Socket)
}

// noAnswer is the finding for a socket that this user gets no answer from.
func (m *machine) noAnswer(f Finding, info fs.FileInfo, err error) []Finding {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return f.as(Off, start, "The program that served %s has exited and left its socket: the next one reuses it.",
			m.Socket)
	case errors.Is(err, fs.ErrPermission):
		fix := fmt.Sprintf("sudo setfacl -m u:%d:rw %s", os.Geteuid(), quoted(m.Socket)) // a group may have other members
		return f.as(Missing, fix, "This user may not connect to the socket %s: %s.", m.Socket, mayConnect(info))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return f.as(Missing, "stop it, and start the agent or the Collector again",
			"The program that listens on %s does not answer within %v.", m.Socket, maxCall)
	}
	return f.as(Missing, elsewhere, "%v.", err)
}

// othersOwn reports whether a file belongs to another user.
func othersOwn(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) != os.Geteuid()
}

// mayConnect names who may connect, from the owner and the mode of a socket.
func mayConnect(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "only its owner may"
	}
	who := "only user " + userName(st.Uid)
	if info.Mode().Perm()&0o020 != 0 {
		who += " and group " + groupName(st.Gid)
	}
	return who + " may"
}

func userName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

func groupName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	return text
}
