//go:build linux

package main

import "context"

func (o *options) followRemedies(context.Context) (int, error) { return 0, nil }
