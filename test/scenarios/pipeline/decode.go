//go:build linux

package pipeline

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"
)

// mix is the decoder's work: rounds of arithmetic of which each needs the one before, over the record's bytes again
// and again.
func mix(record []byte, rounds int) uint64 {
	x := uint64(len(record))
	for at := 0; rounds > 0; rounds-- {
		if at+8 > len(record) {
			at = 0
		}
		x = (x ^ binary.LittleEndian.Uint64(record[at:])) * 0x9e3779b97f4a7c15
		x ^= x >> 29
		at += 8
	}
	return x
}

// calibration is how much CPU time Calibrate takes.
const calibration = 200 * time.Millisecond

// Calibrate finds this machine's rate: rounds of the decoder's work in a second of CPU time. It takes 0.2 s, and counts
// the time on the CPU alone, so that others who want it matter little: what they do to caches and to the other half of
// a core, they do to the decoder as well.
func Calibrate() (rate float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rounds = 200_000
	record := make([]byte, 64<<10)
	var rates []float64
	begin := threadCPU()
	for before, now := begin, begin; now-begin < calibration && len(rates) < 10_000; before = now {
		record[0] = byte(mix(record, rounds))
		if now = threadCPU(); now > before {
			rates = append(rates, rounds/(now-before).Seconds())
		}
	}
	if len(rates) == 0 {
		return 0, errors.New("this machine does not count the CPU time of threads: decoding cannot be calibrated")
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// roundsOf is how many rounds take d.
func roundsOf(d time.Duration, rate float64) int { return int(d.Seconds() * rate) }
