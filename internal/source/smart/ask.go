package smart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// arguments are the least that tells everything: what the drive is (-i), its self-assessment (-H), its attributes or
// health log (-A), the error counters of SCSI drives (-l error, which also reads ATA's summary log of one sector), and the
// wear of SSDs (-l ssd: one page of ATA's device statistics, or SCSI's media page). -x would read a dozen logs more, some
// with commands that old bridges do not survive. --nocheck=standby ends smartctl before the first command that would spin
// a sleeping disk up.
func (t *target) arguments() []string {
	list := []string{"--json", "--nocheck=standby", "--info", "--health", "--attributes", "--log=error", "--log=ssd"}
	if t.kind != "" {
		list = append(list, "--device="+t.kind)
	}
	return append(list, t.path)
}

// command is the whole argument vector. No shell is between.
func (s *Source) command(path string, t *target) []string {
	var list []string
	if s.options.Sudo {
		list = append(list, "sudo", "--non-interactive", "--")
	}
	return append(append(list, path), t.arguments()...)
}

// Sudoers is the line that lets a user have root run smartctl for one disk, in exactly the way that Source does. In a
// sudoers file "=", "," and ":" need a backslash (sudoers(5)).
func Sudoers(user, smartctl string, d Disk) string {
	t := target{path: d.Device, kind: d.Type}
	escape := strings.NewReplacer(`\`, `\\`, "=", `\=`, ",", `\,`, ":", `\:`)
	words := []string{smartctl}
	for _, a := range t.arguments() {
		words = append(words, escape.Replace(a))
	}
	return fmt.Sprintf("%s ALL=(root) NOPASSWD: %s", user, strings.Join(words, " "))
}

// ErrMissing says that there is no smartctl.
var ErrMissing = errors.New("smartctl is not there, so nothing is known of the disks' health (all else goes on): " +
	"install smartmontools 7.0 or later (apt-get install smartmontools, dnf install smartmontools), or name it with smart.smartctl")

// missing is ErrMissing in other words.
type missing struct{ error }

// Is implements what errors.Is asks for.
func (*missing) Is(target error) bool { return target == ErrMissing }

// usual are the folders in which smartctl lies, where PATH has none: a service's often lacks them.
var usual = []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin"}

// find is the absolute path of smartctl: the one that is named, or the one in PATH, or in one of some folders.
func find(named string, folders []string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", &missing{fmt.Errorf("no disk can be asked for its health (all else goes on): %w", err)}
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
	afterKill = time.Second // for which pipes are read after smartctl has ended or was killed: it may have left a child
	giveUp    = 2 * time.Second
	mostError = 4 << 10 // of what it says on standard error
)

// ask runs smartctl for one disk and reads what it says. It returns when smartctl has ended; one that hangs in the kernel
// does not end when it is killed.
func (s *Source) ask(ctx context.Context, path string, t *target) sample.Drive {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	list := s.command(path, t)
	out := &bounded{most: mostText, full: cancel}
	said := &bounded{most: mostError}
	cmd := exec.CommandContext(ctx, list[0], list[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.WaitDelay = afterKill
	ownGroup(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		killGroup(cmd) // a child that it has left holds the pipe
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case out.over:
		return unread(t, fmt.Sprintf("smartctl printed more than %d MiB and was ended", mostText>>20))
	case late && !whole(out.text.Bytes()):
		return silent(t, s.options.Timeout)
	case out.text.Len() == 0 && cmd.ProcessState == nil:
		return unread(t, fmt.Sprintf("smartctl cannot be started: %v", err))
	}
	d, err := parse(out.text.Bytes(), t.name)
	if err != nil {
		return unread(t, s.nonsense(err, said, cmd))
	}
	d = t.complete(d)
	if d.Err == notPermitted(t.name) {
		d.Err = allow(d.Err, path, t)
	}
	return d
}

// allow adds the line that would permit it.
func allow(why, path string, t *target) string {
	if os.Geteuid() == 0 {
		return why + ": root has not got it here, as in a container"
	}
	name := "USER"
	if who, err := user.Current(); err == nil && userName.MatchString(who.Username) {
		name = who.Username
	}
	return why + ", and this line below /etc/sudoers.d: " + Sudoers(name, path, Disk{Device: t.path, Type: t.kind})
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// whole says whether an answer is complete, whatever became of the program afterwards.
func whole(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[len(text)-1] == '}'
}

// nonsense says what is wrong with an answer, with what was said on standard error: sudo's refusal is there.
func (s *Source) nonsense(err error, said *bounded, cmd *exec.Cmd) string {
	text := clean(said.text.String(), 200)
	switch {
	case s.options.Sudo && text != "":
		return "sudo says: " + text + " (docs/health.md has the line that lets it)"
	case text != "":
		return fmt.Sprintf("what smartctl said cannot be used: %v; on standard error: %s", err, text)
	case errors.Is(err, errEmpty):
		return fmt.Sprintf("%v, and ended with %v", err, cmd.ProcessState)
	case errors.Is(err, errOld):
		return err.Error()
	}
	return fmt.Sprintf("what smartctl said cannot be used: %v", err)
}

// complete adds what the machine knows of a drive.
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

func silent(t *target, after time.Duration) sample.Drive {
	d := unread(t, fmt.Sprintf("smartctl has not ended within %v: the disk, its cable or its controller hangs", after))
	d.Silent = true
	return d
}

// bounded keeps the beginning of what is written. Past its bound it calls full, where there is one, and refuses the rest;
// without one it forgets the rest.
type bounded struct {
	text bytes.Buffer
	most int
	over bool
	full func()
}

var errFull = errors.New("too much output")

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.text.Len()
	if len(p) <= room {
		return b.text.Write(p)
	}
	_, _ = b.text.Write(p[:room])
	if b.over = true; b.full == nil {
		return len(p), nil
	}
	b.full()
	return room, errFull
}

var _ io.Writer = (*bounded)(nil)
