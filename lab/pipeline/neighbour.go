package pipeline

import "time"

// Noise is the work of a neighbour: threads that read or write at full speed until they are stopped.
type Noise struct {
	Seed    uint64
	Files   []string // existing files; records at pseudo-random places, repeatedly
	Workers int      // threads; 0 is 1
	Record  int      // bytes per operation, a multiple of 4096; 0 is 64 KiB
	Reading Reading  // Buffered or Direct; a buffered reader drops what it has read from the page cache
	Write   bool     // write the files instead of reading them
	Every   int      // records between two fdatasyncs of a buffered writer; 0 is 16
}

// NoiseTruth is the work that a neighbour did.
type NoiseTruth struct {
	Operations int64
	Bytes      int64
	Duration   time.Duration // from StartNoise to StopNoise
}
