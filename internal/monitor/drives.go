package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/drives"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// Drives says how the machine's drives are asked for their health.
type Drives struct {
	Ask     drives.Options // its Root is Config.Root
	History string         // the file in which their counts are remembered; "" keeps them in memory alone
	Auto    bool           // nobody has asked for it: where there is no smartctl, that is no problem
}

// NewDrives returns how drives are read as the user configured, or nil for not at all. Their history is in a file next to
// the baselines.
func NewDrives(s *config.Smart, slow config.Slow) *Drives {
	if !s.On() {
		return nil
	}
	return &Drives{Ask: s.Options(), History: drivesFile(slow), Auto: s == nil}
}

// drivesFile returns the file of the drives' history, or "" for none.
func drivesFile(slow config.Slow) string {
	if !slow.HasBaseline() {
		return ""
	}
	return drives.DefaultPath(slow.Baseline)
}

// health asks the drives on a goroutine of its own: they take seconds to answer, and some never do.
type health struct {
	stream sample.Stream
	book   *drives.Book // opened by that goroutine: its disk may hang
	config Drives
	boot   string
	ended  chan struct{} // closed by that goroutine
}

// healthEnd is how long end waits: a round that is ended kills its smartctl, and gives up on one that hangs after 2 s.
const healthEnd = 5 * time.Second

// end waits for the goroutine, which has been told to end. The disk that the history lies on may hold it for ever.
func (h *health) end() {
	if h == nil {
		return
	}
	select {
	case <-h.ended:
	case <-time.After(healthEnd):
	}
}

func (m *Monitor) newHealth() error {
	if m.config.Drives == nil {
		return nil
	}
	h := &health{config: *m.config.Drives, boot: drives.Boot(m.config.Root)}
	h.config.Ask.Root = m.config.Root
	source, err := smart.New(h.config.Ask)
	if err != nil {
		return err
	}
	h.stream = source
	m.health = h
	return nil
}

func (m *Monitor) runHealth(ctx context.Context) {
	h := m.health
	h.book = drives.Open(h.config.History, h.boot, func(err error) { m.problems.note("drives", err) })
	h.stream.Run(ctx, m.takeDrives)
}

// takeDrives is the drives' sink: what they told is judged by their history.
func (m *Monitor) takeDrives(source string, s *sample.Sample, err error) {
	h := m.health
	if errors.Is(err, smart.ErrMissing) && h.config.Auto {
		return
	}
	m.problems.note(source, err)
	if err != nil && len(s.Drives) == 0 {
		return // they could not be listed: none has vanished for that
	}
	s.Drives = h.book.Take(s.Drives, h.config.Ask.Listing(), time.Now())
	m.mu.Lock()
	m.append(source, s)
	listeners := m.onDrives
	m.mu.Unlock()
	for _, tell := range listeners {
		(*tell)(s.Drives)
	}
}

// OnDrives has tell called with all drives after each round of questions, judged, the worst first, on the goroutine that
// asks them, until forget is called. The list is never changed.
func (m *Monitor) OnDrives(tell func([]sample.Drive)) (forget func()) {
	return listen(m, &m.onDrives, tell)
}
