//go:build !linux

package bench

import (
	"context"
	"errors"
)

func run(context.Context, Options) (*Result, error) {
	return nil, errors.New("disks are measured only on Linux")
}

func model(context.Context, ModelOptions) (*ModelResult, error) {
	return nil, errors.New("models are measured only on Linux")
}
