package progress

// Kind says what a line of output tells.
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

// Event is one thing that a line tells. The Reader has no clock: an event happened when its line came.
//
// Epochs never overlap: between two EpochStarts there is always an EpochEnd. An EpochEnd may come without a start,
// from programs that print a line only when an epoch is over: that epoch began at the EpochEnd before it, or, where
// there is none, with the program.
type Event struct {
	Kind Kind

	Epoch    int     // as the program prints it, whether it counts from 0 or from 1
	Fraction float64 // part of the epoch that is done, 0 to 1, as far as the line says; on a start, what was done already
	Total    int     // number of epochs, as printed; 0 when the line does not say

	Model string // name or path as printed, at most 256 bytes of UTF-8; empty when the program does not say

	// Void says of an EpochEnd that nothing printed shows that the epoch took place: training ended, or the program
	// did, at the very amount at which it would have begun. Of a LoadEnd it says that the end was never printed. Such
	// a window is better dropped.
	Void bool
}
