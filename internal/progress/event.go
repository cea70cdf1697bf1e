package progress

import "time"

// Kind is the kind of an event.
type Kind uint8

const (
	EpochBegin Kind = iota + 1 // an epoch is open; that it began at From may be corrected
	EpochEnd                   // an epoch was from From to To; only this is final
	EpochDrop                  // the open epoch was none
	LoadBegin                  // Model began to load at From
	LoadEnd                    // Model was loaded at To, or its loading has failed
	LoadDrop                   // the end of an open load was never printed
)

// String is the kind's name in Go, for logs and tests.
func (k Kind) String() string {
	return [...]string{"Kind(0)", "EpochBegin", "EpochEnd", "EpochDrop", "LoadBegin", "LoadEnd", "LoadDrop"}[k]
}

// Event is the begin or end of an epoch or a model load. Times are those that were passed to the Reader; they may lie
// in the past, as the lines that follow show what a line was.
//
// Epochs do not overlap, and their ends come in order. An EpochEnd may come without an EpochBegin.
type Event struct {
	Kind     Kind
	From, To time.Duration

	Epoch  int  // as printed: programs count from 0 or from 1
	Epochs int  // how many the window stands for, of an EpochEnd: 10 if a program prints each tenth
	Loose  bool // the begin or the end is that of the program: the window contains time of something else

	Failed string // of a LoadEnd: the line about its failure, at most 256 bytes of UTF-8

	Model string // name or path as printed, at most 256 bytes of UTF-8; empty if no line has it
}
