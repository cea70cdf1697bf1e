package identity

import (
	"bufio"
	"cmp"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// users are the names of a machine's users: those of /etc/passwd below root, and if that is this process's root, those
// of the services in nsswitch.conf(5), such as LDAP. The latter may be slow, so they are asked in the background.
type users struct {
	root   string
	lookUp func(uid string) (*user.User, error)
	asking sample.Tasks

	mu     sync.Mutex // guards the fields below
	busy   bool       // a service is asked now
	names  map[int64]string
	looked time.Time
	stamp  time.Time             // of the file
	others map[int64]serviceUser // by services
}

// serviceUser is what services say of a user.
type serviceUser struct {
	name  string // "" for none
	until time.Time
}

const (
	maxUsers   = 1 << 16
	maxOthers  = 1024
	lookAgain  = 10 * time.Second
	knownFor   = 10 * time.Minute
	unknownFor = time.Minute
)

// name returns the name of a user, or the number without one.
func (u *users) name(uid int64) string {
	if uid < 0 {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.looked.IsZero() || now.Sub(u.looked) >= lookAgain {
		u.looked = now
		u.read()
	}
	if name := u.names[uid]; name != "" {
		return name
	}
	number := strconv.FormatInt(uid, 10)
	if u.root != "/" {
		return number
	}
	other := u.others[uid]
	if other.until.Before(now) {
		u.busy = u.busy || u.asking.Start(func() { u.ask(uid, number) })
	}
	return cmp.Or(other.name, number)
}

// ask asks the services for a user.
func (u *users) ask(uid int64, number string) {
	other := serviceUser{until: time.Now().Add(unknownFor)}
	_ = sample.Protect(func() { // counted there
		if found, err := u.lookUp(number); err == nil {
			other = serviceUser{name: found.Username, until: time.Now().Add(knownFor)}
		}
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	if u.others == nil || len(u.others) >= maxOthers {
		u.others = make(map[int64]serviceUser)
	}
	u.others[uid] = other
}

// read reads /etc/passwd (passwd(5)) if it has changed.
func (u *users) read() {
	path := u.root + "/etc/passwd"
	info, err := os.Stat(path)
	if err != nil || info.ModTime().Equal(u.stamp) || !info.Mode().IsRegular() {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	u.stamp, u.names = info.ModTime(), make(map[int64]string)
	for lines := bufio.NewScanner(file); lines.Scan() && len(u.names) < maxUsers; {
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 4 || fields[0] == "" {
			continue
		}
		uid, err := strconv.ParseUint(fields[2], 10, 32)
		if _, known := u.names[int64(uid)]; err == nil && !known { // the first counts, as in getpwuid(3)
			u.names[int64(uid)] = fields[0]
		}
	}
}
