//go:build !(linux && cgo)

package gpu

// noDriver cannot be opened.
type noDriver struct{ driver }

func (noDriver) open() error   { return ErrNotBuilt }
func (noDriver) maker() *maker { return nvidia }

func newDriver(string) driver { return noDriver{} }
