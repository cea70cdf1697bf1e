package pipeline

import "time"

// Noise is a neighbour: threads that read or write as hard as they can until they are told to stop.
type Noise struct {
	Seed    uint64
	Files   []string // they exist; records at pseudo-random places, again and again
	Workers int      // threads; 0 is 1
	Record  int      // bytes an operation, whole blocks of 4096; 0 is 64 KiB
	Reading Reading  // Buffered or Direct; a buffered reader drops what it has read from the page cache
	Write   bool     // over the files instead of reading them
	Every   int      // records between two fdatasyncs of a buffered writer; 0 is 16
}

// NoiseTruth is what a neighbour did.
type NoiseTruth struct {
	Operations int64
	Bytes      int64
	Duration   time.Duration // from StartNoise to StopNoise
}
