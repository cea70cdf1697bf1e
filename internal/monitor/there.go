package monitor

import (
	"os"
	"path/filepath"
	"time"
)

// thereTime is for how long There waits. A busy disk may take a while to say whether a file exists.
const thereTime = 100 * time.Millisecond

// There says whether a name that was told is the absolute path of a file or folder of this machine. It is false where that
// takes too long.
func (m *Monitor) There(name string) bool {
	if !filepath.IsAbs(name) {
		return false
	}
	if m.looks.Add(1) > mostLooks {
		m.looks.Add(-1)
		return false
	}
	found := make(chan bool, 1)
	if !m.errands.run(func() {
		defer m.looks.Add(-1)
		_, err := os.Stat(filepath.Join("/", m.config.Root, name))
		found <- err == nil
	}) {
		m.looks.Add(-1)
		return false
	}
	late := time.NewTimer(thereTime)
	defer late.Stop()
	select {
	case there := <-found:
		return there
	case <-late.C:
		return false
	}
}
