//go:build linux

package pipeline

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestEveryReadingAndStyleGivesTheSameRecords(t *testing.T) {
	paths, p := shards(t), start(t)
	for _, record := range []int{1000, 64 << 10} {
		plan := Plan{Seed: 7, Files: paths, Record: record, Batch: 5, Steps: 9, Prefetch: 2, Compute: 100 * time.Microsecond}
		want := expected(t, plan)
		for _, plan.Reading = range []Reading{Buffered, Mapped, Direct, Uring} {
			for _, plan.Style = range []Style{Serial, PyTorch, TFData} {
				for _, plan.Workers = range []int{1, 3, 11} {
					if plan.Style == Serial && plan.Workers > 1 {
						continue
					}
					plan.Depth = plan.Workers + 2
					t.Run(fmt.Sprintf("%d/%s/%s/%d", record, plan.Reading, plan.Style, plan.Workers), func(t *testing.T) {
						skipUnlessOffered(t, p, plan)
						if err := Forget(paths...); err != nil {
							t.Fatal(err)
						}
						for _, name := range []string{"cold", "warm"} {
							if truth := run(t, p, plan); truth.Checksum != want {
								t.Errorf("%s: checksum %08x, want %08x", name, truth.Checksum, want)
							}
						}
					})
				}
			}
		}
	}
}

func TestAnotherSeedTakesOtherRecords(t *testing.T) {
	plan := Plan{Files: shards(t), Record: 4096, Batch: 5, Steps: 9}
	p := start(t)
	first := run(t, p, plan)
	plan.Seed = 1
	if second := run(t, p, plan); second.Checksum == first.Checksum {
		t.Error("the same checksum for two seeds")
	}
}

func TestWaitsBelongToTheirPhase(t *testing.T) {
	paths, p := shards(t), start(t)
	for _, style := range []Style{Serial, PyTorch, TFData} {
		plan := Plan{
			Files:   paths,
			Record:  64 << 10,
			Batch:   4,
			Steps:   10,
			Style:   style,
			Workers: 2,
			Decode:  20 * time.Millisecond, // more than a read waits for a processor on a loaded machine
			Compute: time.Millisecond,
		}
		truth := run(t, p, plan)
		if truth.Decode <= truth.Read || truth.DecodeTime < truth.Decode/2 {
			t.Errorf("%s: mostly decoding: %+v", style, truth)
		}
		plan.Decode, plan.Sync, plan.Compute = 0, 20*time.Millisecond, 0
		truth = run(t, p, plan)
		if truth.Sync <= truth.Duration/2 || truth.Busy != 0 {
			t.Errorf("%s: mostly synchronising: %+v", style, truth)
		}
	}
}

func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	plan := Plan{
		Files:           shards(t),
		Record:          4096,
		Batch:           1,
		Steps:           7,
		CheckpointEvery: 3,
		CheckpointBytes: 3<<20 + 5,
		CheckpointDir:   dir,
	}
	if truth := run(t, start(t), plan); truth.Write <= 0 {
		t.Errorf("no time went into checkpoints: %+v", truth)
	}
	p := start(t)
	if err := p.Prepare(plan); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Go(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPreparingReadsNothing(t *testing.T) {
	p := start(t)
	for _, style := range []Style{Serial, PyTorch, TFData} {
		plan := Plan{Files: shards(t), Record: 64 << 10, Batch: 4, Steps: 10, Style: style, Workers: 2}
		if err := p.Prepare(plan); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		truth, err := p.Go(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		consistent(t, plan, truth)
		if truth.Read+truth.Decode == 0 {
			t.Errorf("%s: nothing was left to wait for: %+v", style, truth)
		}
	}
}
