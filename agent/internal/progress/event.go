package progress

// Kind is the kind of an event.
type Kind uint8

const (
	EpochStart    Kind = iota + 1 // Epoch begins with this line
	EpochProgress                 // the open epoch goes on
	EpochEnd                      // Epoch is over
	LoadBegin                     // Model begins to load
	LoadEnd                       // Model is loaded, or its loading has failed
)

// String is the kind's name in Go, for logs and tests.
func (k Kind) String() string {
	switch k {
	case EpochStart:
		return "EpochStart"
	case EpochProgress:
		return "EpochProgress"
	case EpochEnd:
		return "EpochEnd"
	case LoadBegin:
		return "LoadBegin"
	case LoadEnd:
		return "LoadEnd"
	}
	return "Kind(0)"
}

// Event is the begin, progress or end of an epoch or a model load. The Reader has no clock: an event happens when its
// line is read.
//
// Epochs never overlap: between two EpochStarts there is always an EpochEnd. An EpochEnd without a start comes from
// programs that print a line only at an epoch's end. That epoch began at the previous EpochEnd, or with the program.
type Event struct {
	Kind Kind

	Epoch    int     // as printed: programs count from 0 or from 1
	Fraction float64 // of the epoch that is done, 0 to 1; 0 if the line does not have it
	Total    int     // number of epochs, as printed; 0 if the line does not have it

	Model string // name or path as printed, at most 256 bytes of UTF-8; empty if the line does not have it

	// Void marks a window to drop. For an EpochEnd, training or the program ended at the amount at which the epoch
	// would have begun, so no output shows that it took place. For a LoadEnd, the end was never printed.
	Void bool
}
