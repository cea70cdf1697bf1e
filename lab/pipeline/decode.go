//go:build linux

package pipeline

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"
)

// mix is the decoder's work: rounds of arithmetic, each dependent on the previous one, over the record's bytes in a
// loop.
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

// calibration is the CPU time of Calibrate.
const calibration = 200 * time.Millisecond

// Calibrate measures this machine's rate: rounds of the decoder's work per second of CPU time. It takes 0.2 s. It
// counts CPU time only, so that other load matters little: load slows the caches and the other hardware thread of a
// core for the decoder as well.
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

// roundsOf returns how many rounds take d.
func roundsOf(d time.Duration, rate float64) int { return int(d.Seconds() * rate) }
