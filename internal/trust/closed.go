package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Refused says why a socket that denies access has not answered, and what to do: it is open to its owner and group, or
// it is not known whether there is one.
func Refused(socket string) string {
	if folder := Closed(socket); folder != "" {
		return fmt.Sprintf("%s cannot be entered by this user, so it is not known whether an agent runs there: "+
			"ask its owner or use sudo", folder)
	}
	return socket + " is open to its owner and group only: become one of them"
}

// Closed returns the folder above a file that this user may not enter, or "".
func Closed(path string) string {
	folder := filepath.Dir(path)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for { // the uppermost one that is closed keeps those below from being looked at
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrPermission) || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}
