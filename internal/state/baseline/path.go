package baseline

import (
	"errors"
	"os"
	"path/filepath"
)

const (
	fileName     = "baseline.json"
	databaseName = "baseline.db" // of earlier versions, in the same folder
)

// DefaultPath returns the path of the file if no other is configured. The folder is $XDG_STATE_HOME/stallspan if that
// variable is an absolute path, /var/lib/stallspan for root (because of sudo, where HOME may be of a user), and
// ~/.local/state/stallspan for other users.
func DefaultPath() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stallspan", fileName), nil
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/stallspan", fileName), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder for the baselines: set XDG_STATE_HOME")
	}
	return filepath.Join(home, ".local/state/stallspan", fileName), nil
}
