package baseline

import (
	"errors"
	"os"
	"path/filepath"
)

// Off is what stands in place of a file's path where none is to be kept.
const Off = "off"

// DefaultPath is where the file lies unless another is named: $XDG_STATE_HOME/stallspan/baseline.db where that variable
// is an absolute path; otherwise /var/lib/stallspan/baseline.db for root, whose home may be somebody else's (sudo), and
// ~/.local/state/stallspan/baseline.db for everybody else.
func DefaultPath() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stallspan/baseline.db"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/stallspan/baseline.db", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder for the baselines: set XDG_STATE_HOME")
	}
	return filepath.Join(home, ".local/state/stallspan/baseline.db"), nil
}
