package receiver

import (
	"errors"
	"time"

	"go.uber.org/zap"
)

var errFull = errors.New("too much waits for a pipeline that does not take it")

// lose counts what will never arrive.
func (o *outbox[T]) lose(n int, why error) {
	o.mu.Lock()
	o.gone += int64(n)
	o.untold += int64(n)
	o.why = why
	o.mu.Unlock()
	o.tell(tellEvery)
}

// refused says that the pipeline takes nothing at the moment.
func (o *outbox[T]) refused(why error) {
	if o.quiet(&o.toldRefused, tellEvery) {
		return
	}
	o.logger.Warn("the pipeline takes no "+o.what+" of windows, they are kept for it", zap.Error(why))
}

// tell writes one line about what was lost since the line before, unless that is younger than pause.
func (o *outbox[T]) tell(pause time.Duration) {
	o.mu.Lock()
	n, why := o.untold, o.why
	o.mu.Unlock()
	if n == 0 || o.quiet(&o.toldLost, pause) {
		return
	}
	o.mu.Lock()
	o.untold -= n
	o.mu.Unlock()
	o.logger.Error(o.what+" of windows were lost", zap.Int64("count", n), zap.Error(why))
}

// quiet says that a line was written less than pause ago; if not, one is going to be.
func (o *outbox[T]) quiet(told *time.Time, pause time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if pause > 0 && time.Since(*told) < pause {
		return true
	}
	*told = time.Now()
	return false
}
