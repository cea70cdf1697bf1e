package slowdisk

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestPacer(t *testing.T) {
	type request struct {
		at    time.Duration
		bytes int
		want  time.Duration
	}
	tests := []struct {
		name     string
		model    model
		requests []request
	}{
		{"one at a time", model{Delay: 10 * ms, Width: 1}, []request{
			{100 * ms, 4096, 110 * ms}, {101 * ms, 4096, 120 * ms}, {102 * ms, 0, 130 * ms}, {500 * ms, 4096, 510 * ms},
		}},
		{"two at once", model{Delay: 10 * ms, Width: 2}, []request{
			{100 * ms, 1, 110 * ms}, {104 * ms, 1, 114 * ms}, {105 * ms, 1, 120 * ms}, {106 * ms, 1, 124 * ms},
		}},
		{"any number at once", model{Delay: 10 * ms}, []request{{0, 1, 10 * ms}, {0, 1, 10 * ms}, {1 * ms, 1, 11 * ms}}},
		{"a link", model{BytesPerSecond: 1000}, []request{
			{time.Second, 10, time.Second + 10*ms - credit}, {time.Second, 20, time.Second + 30*ms - credit},
			{time.Second, 0, time.Second}, // moves nothing
		}},
		{"both", model{Delay: 5 * ms, Width: 1, BytesPerSecond: 1000}, []request{
			{time.Second, 10, time.Second + 15*ms - credit}, {time.Second, 1, time.Second + 16*ms - credit},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p pacer
			p.set(test.model, true)
			for _, r := range test.requests {
				if got := p.done(r.at, r.bytes); got != r.want {
					t.Errorf("%d bytes at %v are done at %v, want %v", r.bytes, r.at, got, r.want)
				}
			}
			p.set(test.model, false)
			if got := p.done(3*ms, 4096); got != 3*ms {
				t.Errorf("while it is fast, a request of %v is done at %v", 3*ms, got)
			}
		})
	}
}

// TestPacerKeepsItsPromises checks that no request completes before its delay, and that no interval exceeds the limits.
func TestPacerKeepsItsPromises(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := model{
			Delay:          time.Duration(random.IntN(10)) * ms,
			Width:          random.IntN(5),
			BytesPerSecond: int64(random.IntN(3)) * mib,
		}
		var p pacer
		p.set(m, true)
		var now, begin, last time.Duration
		now, begin = time.Hour, time.Hour
		var bytes, count int64
		for range 100 {
			now += time.Duration(random.IntN(8)) * ms / 2
			size := random.IntN(64 * kib)
			end := p.done(now, size)
			bytes, count, last = bytes+int64(size), count+1, max(last, end)
			if end < now+m.Delay {
				t.Fatalf("%+v: a request of %v is done at %v", m, now, end)
			}
			if m.BytesPerSecond > 0 && (last-begin+credit+ms).Seconds()*float64(m.BytesPerSecond) < float64(bytes) {
				t.Fatalf("%+v: %d bytes in %v", m, bytes, last-begin)
			}
			if m.Width > 0 && last-begin < m.Delay*time.Duration(count/int64(m.Width)) {
				t.Fatalf("%+v: %d requests in %v", m, count, last-begin)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := Options{}.of(Spinning)
	if want := (Options{Size: gib, Delay: 10 * ms, Width: 1, ReadAhead: 128 * kib}); err != nil || o != want {
		t.Errorf("got %+v, %v", o, err)
	}
	o, err = Options{BytesPerSecond: mib}.of(Throttled)
	if err != nil || o.IOPS != 0 {
		t.Errorf("got %+v, %v", o, err)
	}
	for kind, bad := range map[Kind]Options{
		"floppy":  {},
		Memory:    {Delay: ms},
		Local:     {IOPS: 1},
		SATA:      {IOPS: 1},
		Throttled: {Width: 1},
		Spinning:  {Size: 1},
		Parallel:  {Delay: -1},
	} {
		if _, err := bad.of(kind); err == nil {
			t.Errorf("%s takes %+v", kind, bad)
		}
	}
}
