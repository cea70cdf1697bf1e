package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/notice"
)

// program does what an Exec says.
type program struct {
	Exec
	as    *identity // nil for our own
	limit *limit
}

// newProgram finds out as whom it is started.
func newProgram(e *Exec) (*program, error) {
	p := &program{Exec: *e, limit: newLimit(cmp.Or(e.PerMinute, defaultPerMinute))}
	p.Timeout = cmp.Or(p.Timeout, defaultTimeout)
	info, err := os.Stat(p.Command[0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("the program of exec cannot be started: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return nil, fmt.Errorf("the program of exec cannot be started: %s is no program, run chmod +x on it", p.Command[0])
	}
	p.as, err = whom(p.User)
	return p, err
}

// mostSaid bounds what is kept of what a program prints, in bytes.
const mostSaid = 1 << 10

// afterKill is for how long a program that was killed, or has ended, may leave its output open in somebody else's hands.
const afterKill = time.Second

// path is what programs find theirs by: ours may lead to places that only we may trust.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// act starts the program once and waits for its end.
func (p *program) act(ctx context.Context, n *notice.Notice) (says string, again bool, err error) {
	if !p.limit.take() {
		return "", false, errTooOften
	}
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, p.Command[0], p.Command[1:]...)
	cmd.Dir = "/"
	cmd.Env = environment(n)
	cmd.Stdin = bytes.NewReader(n.JSON())
	var out said
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = afterKill
	p.apart(cmd)
	began := time.Now()
	if err = start(cmd); err == nil {
		err = wait(cmd)
	}
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return "it succeeded" + out.words(), false, nil
	case ctx.Err() != nil:
		return "", false, errors.New("it was killed, because the agent stops")
	case errors.Is(limited.Err(), context.DeadlineExceeded) && time.Since(began) >= p.Timeout:
		return "", false, fmt.Errorf("it was killed after %v: raise its timeout, or have it do less%s", p.Timeout, out.words())
	}
	return "", false, fmt.Errorf("it failed: %w%s", err, out.words())
}

// said keeps the beginning of what a program prints.
type said struct{ bytes.Buffer }

func (s *said) Write(text []byte) (int, error) {
	if room := mostSaid - s.Len(); room > 0 {
		s.Buffer.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}

// words is that in one line.
func (s *said) words() string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s.String(), "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}

// mostVariable bounds a variable's value, in bytes.
const mostVariable = 1 << 10

// environment is that of a program: the event in variables. Ours is not passed on, as it may hold keys.
func environment(n *notice.Notice) []string {
	l := n.Line()
	env := []string{path}
	set := func(name, value string) { env = append(env, name+"="+harmless(value)) }
	set("STALLSPAN_EVENT_ID", l.ID)
	set("STALLSPAN_EVENT_NAME", l.Name)
	set("STALLSPAN_EVENT_SEVERITY", l.Severity)
	set("STALLSPAN_EVENT_TIME", l.Time.Format(time.RFC3339Nano))
	set("STALLSPAN_EVENT_RESOLVED", fmt.Sprint(l.Resolved))
	set("STALLSPAN_EVENT_TEST", fmt.Sprint(l.Test))
	set("STALLSPAN_EVENT_BODY", l.Body)
	set("STALLSPAN_EVENT_TRACE_ID", l.TraceID)
	set("STALLSPAN_EVENT_SPAN_ID", l.SpanID)
	for i, kv := range n.Attributes {
		if i == mostArguments {
			break
		}
		if name := variable(kv.Key); name != "" {
			set("STALLSPAN_ATTRIBUTE_"+name, kv.Value.String())
		}
	}
	return env
}

// variable is an attribute's name as one of a variable: hw.id is HW_ID. It is "" for one that has other letters.
func variable(key attribute.Key) string {
	const most = 100
	name := []byte(strings.ToUpper(string(key)))
	if len(name) > most {
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

// harmless takes out what does not fit into a variable, or moves a terminal's cursor.
func harmless(value string) string {
	if len(value) > mostVariable {
		value = value[:mostVariable]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))
}
