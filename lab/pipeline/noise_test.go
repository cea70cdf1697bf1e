//go:build linux

package pipeline

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestNoise(t *testing.T) {
	paths, p := shards(t), start(t)
	for _, n := range []Noise{
		{Files: paths, Record: 4096},
		{Files: paths, Record: 4096, Workers: 3, Reading: Direct},
		{Files: paths, Record: 8192, Workers: 2, Write: true, Every: 2},
		{Files: paths, Write: true, Reading: Direct},
	} {
		if err := p.StartNoise(n); err != nil {
			if n.Reading == Direct && strings.Contains(err.Error(), "invalid argument") {
				continue // not offered by this file system
			}
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		truth, err := p.StopNoise()
		if err != nil || truth.Duration < 20*time.Millisecond ||
			truth.Bytes != truth.Operations*int64(max(n.Record, 4096)) && n.Record > 0 {
			t.Errorf("noise %+v: got %+v, %v; want at least 20 ms, and bytes that match the operations", n, truth, err)
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() != 2<<20+777 {
			t.Errorf("a writer changed the size of %s: %v, %v", path, info, err)
		}
	}
	invalid := []Noise{{}, {Files: paths, Record: 5}, {Files: []string{"/nowhere"}}, {Files: paths, Record: 1 << 24}}
	for _, n := range invalid {
		if err := p.StartNoise(n); err == nil {
			t.Errorf("%+v makes noise", n)
		}
	}
}

func TestNoiseEndsWithItsProgram(t *testing.T) {
	p := start(t)
	if err := p.StartNoise(Noise{Files: shards(t), Workers: 2}); err != nil {
		t.Fatal(err)
	}
}
