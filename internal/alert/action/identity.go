package action

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

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
