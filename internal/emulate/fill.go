package emulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// errOverBudget stops the writing of a round.
var errOverBudget = errors.New("over budget")

// fill writes the files at paths, the model first, in at most rounds rounds. At the end of a round all bytes are on the
// disk and out of the page cache. So its time is the disk's own, and shows whether another round fits the budget. fill
// returns the number of rounds, at least one.
func fill(ctx context.Context, paths []string, rounds int64, budget time.Duration) (done int64, err error) {
	files := make([]*os.File, 0, len(paths))
	defer func() {
		for _, file := range files {
			err = errors.Join(err, file.Close())
		}
	}()
	for _, path := range paths {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return 0, err
		}
		files = append(files, file)
	}

	var seed [32]byte // a new one each time, for storage with deduplication
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	noise := rand.NewChaCha8(seed)
	begin := time.Now()
	goOn := func() error {
		if time.Since(begin) > budget {
			return errOverBudget
		}
		return ctx.Err()
	}
	var last time.Duration
	for done < rounds && (done == 0 || time.Since(begin)+last <= budget) {
		started := time.Now()
		err := addRound(files, noise, goOn)
		if errors.Is(err, errOverBudget) {
			if done > 0 {
				err = shorten(files, done)
			}
			return done, err
		}
		if err != nil {
			return done, err
		}
		done++
		last = time.Since(started)
	}
	return done, nil
}

// addRound appends one round to each file. It calls goOn before each MiB and each sync, because these cannot be
// interrupted.
func addRound(files []*os.File, noise *rand.ChaCha8, goOn func() error) error {
	buffer := make([]byte, mib)
	for i, file := range files {
		for range roundPart(i) / mib {
			if err := goOn(); err != nil {
				return err
			}
			_, _ = noise.Read(buffer) // never fails
			if _, err := file.Write(buffer); err != nil {
				return err
			}
		}
	}
	for _, file := range files {
		if err := goOn(); err != nil {
			return err
		}
		if err := forget(file); err != nil {
			return err
		}
	}
	return nil
}

// shorten removes an incomplete round.
func shorten(files []*os.File, rounds int64) error {
	for i, file := range files {
		if err := file.Truncate(rounds * roundPart(i)); err != nil {
			return err
		}
	}
	return nil
}

// roundPart returns how many bytes one round adds to the file at paths[i].
func roundPart(i int) int64 {
	if i == 0 {
		return roundModel
	}
	return roundShard
}

// explain adds to an error of fill in dir what to do about it.
func explain(err error, dir string, budget time.Duration) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errOverBudget):
		return fmt.Errorf("%s takes longer than %v to write %s: allow more time, or pass --dir with a path on a faster disk",
			dir, budget, size(roundBytes))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("no room left in %s (%w): free some space, or pass --dir with a path on another disk", dir, err)
	}
	return fmt.Errorf("cannot write files in %s (%w): pass --dir with a path on another disk", dir, err)
}
