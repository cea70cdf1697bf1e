package chain

import "time"

// frame is what a leading thread did in a stretch of about frameTime, in seconds.
type frame struct {
	from                time.Duration
	all                 float64
	storage, fetch      float64 // its own waiting for storage, and the kernel's work to fetch data
	fedStorage, fedWork float64 // waiting for others that read: as they wait for storage, and work
	network             float64
	running, sleeping   float64
}

func (f *frame) add(p *Piece) {
	length := (p.To - p.From).Seconds()
	f.all += length
	switch {
	case p.Kind == Storage && p.Feeder:
		f.fedStorage += length
	case p.Kind == Storage:
		f.storage += length
	case p.Kind == Work && p.Feeder:
		f.fedWork += length * (1 - p.Fetch)
		f.fedStorage += length * p.Fetch
	case p.Kind == Work:
		f.running += length
		f.fetch += length * p.Fetch
	case p.Kind == Other:
		f.sleeping += length
	}
}

// times returns how long the frame would have taken if something were different.
//
// Others that read work ahead while the leading thread does something else. With storage they take all of the frame.
// Without it they take the part of it in which they work, and the thread takes its own part: the longer one counts.
func (f *frame) times(l *lead) Times {
	own := f.all - f.storage - f.fetch
	fed := f.fedStorage + f.fedWork
	faster, twice, memory := f.all, f.all, own
	if fed > 0 {
		alone := own - fed
		memory = max(alone, (f.all-f.storage)*f.fedWork/fed)
		if fed > feeds*f.all {
			twice = max(f.all-fed, f.all/2)
		}
	}
	if fed <= feeds*f.all {
		faster -= (f.running*l.spinning + f.sleeping*l.sleeping) / 2
	}
	d := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return Times{
		Memory: d(memory), Pending: d(f.all - f.storage - f.fedStorage), Workers: d(twice), GPU: d(faster),
		Network: d(max(0, memory-f.network)),
	}
}
