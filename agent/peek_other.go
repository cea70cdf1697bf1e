//go:build !linux

package agent

import (
	"errors"
	"os"
)

// peeked would read output without taking it. Only Linux can.
type peeked struct{}

var errNoCopy = errors.New("output cannot be copied")

func newPeeked(*os.File, *os.File, bool) *peeked { return nil }

func (*peeked) atOnce(n int) int               { return n }
func (*peeked) moved() *os.File                { return nil }
func (*peeked) next([]byte) (n int, err error) { return 0, errNoCopy }
func (*peeked) passed(int)                     {}
func (*peeked) close()                         {}
