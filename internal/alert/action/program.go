package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// program runs an Exec.
type program struct {
	Exec
	as *identity // nil for the agent's own
	// How often it may start. The machine's events have all of it for themselves, and so have tests.
	limit, tests *trust.Rate
}

func newProgram(e *Exec) (*program, error) {
	perMinute := cmp.Or(e.PerMinute, defaultPerMinute)
	p := &program{
		Exec: *e, limit: trust.NewWholeRate(perMinute, time.Minute), tests: trust.NewWholeRate(perMinute, time.Minute),
	}
	p.Timeout = cmp.Or(p.Timeout, defaultTimeout)
	info, err := os.Stat(p.Command[0])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("exec cannot start its program: there is no file %s, correct its path", p.Command[0])
	case err != nil:
		return nil, fmt.Errorf("exec cannot start its program: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return nil, fmt.Errorf("exec cannot start its program: %s is not executable, run chmod +x on it", p.Command[0])
	}
	if p.as, err = lookUpUser(p.User); err != nil {
		return nil, err
	}
	if p.as == nil || p.as.uid == 0 { // with our own rights
		if _, err := trust.Program(p.Command[0]); err != nil {
			return nil, fmt.Errorf("exec does not start %s: %w", p.Command[0], err)
		}
	}
	return p, nil
}

var errRateLimited = errors.New("not run: it has reached its limit of runs a minute; raise per_minute")

// maxOutput bounds the output of a program that is kept, in bytes.
const maxOutput = 1 << 10

// waitDelay is how long a program's output may stay open in other processes after the program was killed or has ended.
const waitDelay = time.Second

// path is the PATH of programs. The agent's own may contain folders that only the agent may trust.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// act runs the program once and waits for its end. No error is retried: the program may have had an effect.
func (p *program) act(ctx context.Context, e *emit.Event) (message string, err error) {
	limit, lane := p.limit, e.Lane()
	if lane == emit.TestLane {
		limit = p.tests
	}
	if limit.Take(lane, sample.Now().Mono) != nil {
		return "", backoff.Permanent(errRateLimited)
	}
	began := time.Now() // before the timeout does
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := trust.NewCommand(limited, p.Command[0], p.Command[1:]...)
	cmd.Dir = "/"
	cmd.Env = environment(e)
	cmd.Stdin = bytes.NewReader(e.JSON())
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = waitDelay
	if p.as != nil { // without the agent's groups
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.as.uid, Gid: p.as.gid}
	}
	// It may use sudo or mail, which need rights of their files.
	if err = cmd.Launch(trust.Rights{Setuid: true}); err == nil {
		err = cmd.Await()
	}
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return "exit status 0" + out.suffix(), nil
	case ctx.Err() != nil:
		err = errors.New("killed because the agent stops")
	case errors.Is(limited.Err(), context.DeadlineExceeded) && time.Since(began) >= p.Timeout:
		err = fmt.Errorf("killed after its timeout of %v%s", p.Timeout, out.suffix())
	default:
		err = fmt.Errorf("%w%s", err, out.suffix())
	}
	return "", backoff.Permanent(err)
}

// output holds the first bytes that are written to it.
type output struct{ bytes.Buffer }

func (o *output) Write(text []byte) (int, error) {
	if room := maxOutput - o.Len(); room > 0 {
		o.Buffer.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}

// suffix returns the output as the rest of a line: "" or ": output".
func (o *output) suffix() string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(o.String(), "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}

// Bounds of the environment.
const (
	maxNameBytes  = 100
	maxAttributes = 64
)

// environment returns a program's environment: PATH and the event. The agent's environment is not passed on, because it
// may contain keys.
func environment(e *emit.Event) []string {
	j := e.ForJSON()
	env := []string{path}
	set := func(name, value string) { env = append(env, name+"="+emit.Clean(value)) }
	set("STALLSPAN_EVENT_ID", j.ID)
	set("STALLSPAN_EVENT_NAME", j.Name)
	set("STALLSPAN_EVENT_SEVERITY", j.Severity)
	set("STALLSPAN_EVENT_TIME", j.Time.Format(time.RFC3339Nano))
	set("STALLSPAN_EVENT_RESOLVED", fmt.Sprint(j.Resolved))
	set("STALLSPAN_EVENT_TEST", fmt.Sprint(j.Test))
	set("STALLSPAN_EVENT_BODY", j.Body)
	set("STALLSPAN_EVENT_TRACE_ID", j.TraceID)
	set("STALLSPAN_EVENT_SPAN_ID", j.SpanID)
	for _, kv := range e.Attributes[:min(len(e.Attributes), maxAttributes)] {
		if name := variable(kv.Key); name != "" {
			set("STALLSPAN_ATTRIBUTE_"+name, kv.Value.String())
		}
	}
	return env
}

// variable returns the name of an attribute's variable: HW_ID for hw.id. It is "" if the name has other characters.
func variable(key attribute.Key) string {
	name := []byte(strings.ToUpper(string(key)))
	if len(name) > maxNameBytes {
		return ""
	}
	for i, c := range name {
		switch {
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '_' || c == '-':
			name[i] = '_'
		default:
			return ""
		}
	}
	return string(name)
}

// identity is the user that a program runs as.
type identity struct{ uid, gid uint32 }

// defaultUser is the user that programs run as if the agent is root and the config has no user.
const defaultUser = "nobody"

// lookUpUser returns nil for the agent's own user. Only root can run programs as another.
func lookUpUser(name string) (*identity, error) {
	root := os.Geteuid() == 0
	if !root && name == "" {
		return nil, nil
	}
	if name == "" {
		name = defaultUser
	}
	found, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("exec cannot run programs as %.40q, choose another user: %w", name, err)
	}
	uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, fmt.Errorf("exec cannot run programs as %.40q: %w", name, err)
	}
	switch {
	case !root && int(uid) != os.Geteuid():
		return nil, fmt.Errorf("exec can run programs as another user only if the agent is root: remove user, "+
			"or run the agent as %.40q", name)
	case !root:
		return nil, nil
	case uid == 0 && name != "root":
		return nil, fmt.Errorf("%.40q has the user ID of root: write user: root if you mean it", name)
	}
	return &identity{uint32(uid), uint32(gid)}, nil
}
