//go:build !(linux && cgo)

package gpu

func newDriver(string) (driver, error) { return nil, ErrNotBuilt }
