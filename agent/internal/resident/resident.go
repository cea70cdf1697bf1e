// Package resident keeps the pages of the program's file resident that are used, and no others.
//
// Most of a program's code and constants are needed once, at its start, or never. The kernel maps them with what lies
// next to them: by default 64 KiB at a fault, and since Linux 6.18 the whole folio of the page cache, which may have
// 2 MiB. They stay mapped, and the kernel takes them for used when it looks for memory to free. This package unmaps all
// of them now and then. What is needed is mapped again from the page cache, at a cost of microseconds.
package resident

import (
	"context"
	"time"
)

// When the program's file is unmapped.
const (
	settling = 10 * time.Second // after the start
	period   = 10 * time.Minute // and from then on
)

// Watch unmaps the pages of the program's file when the program has started, and then every ten minutes, until ctx
// ends. Where the system refuses that, they stay mapped.
func Watch(ctx context.Context) {
	f, err := own()
	if err == nil {
		err = f.divide()
	}
	for wait := settling; err == nil; wait = period {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err = f.release()
	}
}
