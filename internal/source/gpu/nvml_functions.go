//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// newest is the newest version of the functions that have several.
var newest = map[string]int{
	"nvmlInit": 2, "nvmlDeviceGetCount": 2, "nvmlDeviceGetHandleByIndex": 2, "nvmlEventSetWait": 2,
	"nvmlDeviceGetComputeRunningProcesses": 3, "nvmlDeviceGetGraphicsRunningProcesses": 3,
}

// symbols returns the symbols of all versions of a function. go-nvml calls the newest one, which comes first, that the
// library has.
func symbols(function string) (names []string) {
	for version := newest[function]; version > 1; version-- {
		names = append(names, fmt.Sprintf("%s_v%d", function, version))
	}
	return append(names, function)
}

// find returns the symbol of a function in the library, or "".
func (l *library) find(function string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	symbol, known := l.found[function]
	if known {
		return symbol
	}
	for _, name := range symbols(function) {
		if l.lookup(name) == nil {
			symbol = name
			break
		}
	}
	if l.found == nil {
		l.found = map[string]string{}
	}
	l.found[function] = symbol
	return symbol
}

// has reports whether the library has all of these functions.
func (l *library) has(functions ...string) bool {
	for _, f := range functions {
		if l.find(f) == "" {
			return false
		}
	}
	return true
}

// errImpossibleLength means that the driver returned a list that is longer than the memory that it got for it.
var errImpossibleLength = errors.New("the driver returned a list that cannot be: look for Xid in the kernel log")

// call makes every call of the driver. It does not call a function that the library lacks, because that would end the
// process, and it measures how long the call takes.
func (l *library) call(function string, do func() nvml.Return) (err error) {
	name := l.find(function)
	if name == "" {
		return codeFunctionNotFound
	}
	began := time.Now()
	defer func() {
		l.calls.add(name, time.Since(began))
		if recover() != nil {
			err = errImpossibleLength
		}
	}()
	return errorOf(do())
}

// get makes a call that returns one value.
func get[T any](l *library, function string, do func() (T, nvml.Return)) (value T, err error) {
	err = l.call(function, func() (ret nvml.Return) {
		value, ret = do()
		return ret
	})
	return value, err
}
