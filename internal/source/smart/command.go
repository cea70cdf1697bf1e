package smart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// arguments returns the arguments that read everything needed: identity (-i), self-assessment (-H), attributes or
// health log (-A), error counters of SCSI drives (-l error, which also reads ATA's summary log of one sector), and wear
// of SSDs (-l ssd: one page of ATA's device statistics, or SCSI's media page). -x would read a dozen logs more, some
// with commands that crash old bridges. --nocheck=standby ends smartctl before the first command that would spin up a
// sleeping disk.
func (t *target) arguments() []string {
	list := []string{"--json", "--nocheck=standby", "--info", "--health", "--attributes", "--log=error", "--log=ssd"}
	if t.kind != "" {
		list = append(list, "--device="+t.kind)
	}
	return append(list, t.path)
}

// sudos are where systems install sudo. PATH could name another program.
var sudos = []string{"/usr/bin/sudo", "/usr/local/bin/sudo", "/run/wrappers/bin/sudo"}

// command returns the whole argument vector. There is no shell.
func (s *Source) command(path string, t *target) []string {
	var list []string
	if s.options.Sudo {
		installed := slices.IndexFunc(sudos, func(path string) bool { _, err := os.Stat(path); return err == nil })
		list = append(list, sudos[max(0, installed)], "--non-interactive", "--")
	}
	return append(append(list, path), t.arguments()...)
}

// Sudoers returns the line that allows a user to run smartctl as root for one disk, with exactly the arguments of
// Source. In a sudoers file "=", "," and ":" need a backslash (sudoers(5)).
func Sudoers(user, smartctl string, d Disk) string {
	t := target{path: d.Device, kind: d.Type}
	escape := strings.NewReplacer(`\`, `\\`, "=", `\=`, ",", `\,`, ":", `\:`)
	words := []string{smartctl}
	for _, a := range t.arguments() {
		words = append(words, escape.Replace(a))
	}
	return fmt.Sprintf("%s ALL=(root) NOPASSWD: %s", user, strings.Join(words, " "))
}

// ErrMissing means that smartctl is not installed.
var ErrMissing = errors.New("smartctl was not found, so drive health is unknown: install smartmontools 7.0 or later " +
	"(apt-get install smartmontools, dnf install smartmontools), or set smart.smartctl")

// missing is ErrMissing with another text.
type missing struct{ error }

// Is implements errors.Is.
func (*missing) Is(target error) bool { return target == ErrMissing }

// defaultFolders are searched after PATH, which often lacks them in services.
var defaultFolders = []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin"}

// trustedSmartctl is findSmartctl for a program that no other user may replace.
func trustedSmartctl(named string) (string, error) {
	path, err := findSmartctl(named, defaultFolders)
	if err != nil {
		return "", err
	}
	target, err := trust.Program(path)
	if err != nil {
		return "", fmt.Errorf("smartctl is not run, so drive health is unknown: %w", err)
	}
	return target, nil
}

// findSmartctl returns the absolute path of smartctl: the configured one, or the first in PATH and the folders.
func findSmartctl(named string, folders []string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", &missing{fmt.Errorf("drive health is unknown: %w", err)}
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath("smartctl"); err == nil {
		return filepath.Abs(path)
	}
	for _, folder := range folders {
		path := folder + "/smartctl"
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", ErrMissing
}

const (
	waitDelay = time.Second // how long output may stay open after smartctl has ended: it may leave a child
	killWait  = 2 * time.Second
	maxStderr = 4 << 10 // bytes
)

// run runs smartctl for one disk and parses its output. It returns when smartctl has ended, which one that hangs in the
// kernel does not do when it is killed.
func (s *Source) run(ctx context.Context, path string, t *target) sample.Drive {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	list := s.command(path, t)
	out := &limitedBuffer{max: maxOutput, onFull: cancel}
	stderr := &limitedBuffer{max: maxStderr}
	cmd := trust.NewCommand(ctx, list[0], list[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"}
	cmd.Stdout, cmd.Stderr = out, stderr
	cmd.WaitDelay = waitDelay
	err := cmd.Launch(trust.Rights{Ambient: true, Setuid: s.options.Sudo})
	if err == nil {
		err = cmd.Await()
	}
	timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case out.exceeded:
		return unread(t, fmt.Sprintf("smartctl printed more than %d MiB and was killed", maxOutput>>20))
	case timedOut && !bytes.HasSuffix(bytes.TrimSpace(out.text.Bytes()), []byte("}")): // it is not complete
		return noResponse(t, s.options.Timeout)
	case out.text.Len() == 0 && cmd.ProcessState == nil:
		return unread(t, fmt.Sprintf("smartctl cannot be started: %v", err))
	}
	d, err := parse(out.text.Bytes(), t.name)
	if err != nil {
		return unread(t, s.outputError(err, stderr, cmd.Cmd))
	}
	d = t.complete(d)
	if d.Err == permissionHint(t.name) {
		d.Err = withSudoers(d.Err, path, t)
	}
	return d
}

// withSudoers adds the sudoers line that would permit the command.
func withSudoers(why, path string, t *target) string {
	if os.Geteuid() == 0 {
		return why + ": root has not got it here, as in a container"
	}
	name := "USER"
	if who, err := user.Current(); err == nil && userName.MatchString(who.Username) {
		name = who.Username
	}
	if trust.OnlyOf(path, []uint32{0}) != nil {
		return why + ", for a smartctl that only root may replace" // otherwise the line would permit any program
	}
	return why + ", and this line below /etc/sudoers.d: " + Sudoers(name, path, Disk{Device: t.path, Type: t.kind})
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// outputError describes invalid output, with the text on standard error, such as a refusal by sudo.
func (s *Source) outputError(err error, stderr *limitedBuffer, cmd *exec.Cmd) string {
	text := clean(stderr.text.String(), 200)
	switch {
	case s.options.Sudo && text != "":
		return "sudo: " + text + " (stallspan docs health has the sudoers line)"
	case text != "":
		return fmt.Sprintf("the output of smartctl cannot be used: %v; on standard error: %s", err, text)
	case errors.Is(err, errEmpty):
		return fmt.Sprintf("%v, and ended with %v", err, cmd.ProcessState)
	case errors.Is(err, errOld):
		return err.Error()
	}
	return fmt.Sprintf("the output of smartctl cannot be used: %v", err)
}

// complete adds the name, type and ID from the machine.
func (t *target) complete(d sample.Drive) sample.Drive {
	d.Device, d.Type = t.name, t.kind
	if t.wwid != "" {
		d.ID = t.wwid
	}
	return d
}

func unread(t *target, why string) sample.Drive {
	return t.complete(sample.Drive{Status: sample.DriveUnread, Err: why})
}

func noResponse(t *target, after time.Duration) sample.Drive {
	d := unread(t, fmt.Sprintf("smartctl has not ended within %v: the disk, its cable or its controller hangs", after))
	d.Silent = true
	return d
}

// limitedBuffer keeps the first bytes written to it. When it is full it drops the rest, or calls onFull and returns an
// error.
type limitedBuffer struct {
	text     bytes.Buffer
	max      int
	exceeded bool
	onFull   func()
}

var errFull = errors.New("too much output")

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.max - b.text.Len()
	if len(p) <= room {
		return b.text.Write(p)
	}
	_, _ = b.text.Write(p[:room])
	if b.exceeded = true; b.onFull == nil {
		return len(p), nil
	}
	b.onFull()
	return room, errFull
}
