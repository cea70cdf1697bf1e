package scenario

import "slices"

// Cases returns all cases in the order in which they run.
func Cases() []Case { return slices.Concat(storageCases(), computeCases(), loadCases(), otherCases()) }
