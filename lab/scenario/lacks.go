//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// Lacks returns what this machine lacks to run scenarios; nil for nothing.
func Lacks(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("the scenarios need root, to make slow devices and cgroups")
	}
	group, err := follow.NewCgroup(cgroupName)
	if err != nil {
		return fmt.Errorf("no cgroup v2 can be made: %w", err)
	}
	if err := group.Remove(leaving); err != nil {
		return err
	}
	for _, kind := range [...]slowdisk.Kind{slowdisk.Spinning, slowdisk.Throttled} {
		d, err := slowdisk.Open(ctx, kind, slowdisk.Options{Size: 64 << 20})
		if err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
	}
	return nil
}
