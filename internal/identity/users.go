package identity

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// users are the names of a machine's users.
type users struct {
	root string

	mu     sync.Mutex // guards the fields below
	names  map[int64]string
	looked time.Time
	stamp  time.Time // of the file
}

const (
	maxUsers  = 1 << 16
	lookAgain = 10 * time.Second
)

// name returns the name of a user, or the number without one.
func (u *users) name(uid int64) string {
	if uid < 0 {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); u.looked.IsZero() || now.Sub(u.looked) >= lookAgain {
		u.looked = now
		u.read()
	}
	if name := u.names[uid]; name != "" {
		return name
	}
	return strconv.FormatInt(uid, 10)
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
