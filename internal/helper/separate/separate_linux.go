//go:build amd64 || arm64

// Package separate has a Collector separate its privileges, where its environment asks for that (helper.Variable): to
// start a program again is not for a library to decide. The agent does so itself, without being asked. Components
// import it for its effect.
package separate

import (
	"fmt"
	"os"

	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/trust"
)

// init comes before the Collector reads its config, and before its main.
func init() {
	if !helper.Wanted() {
		return
	}
	if err := helper.Separate(trust.Drives); err != nil {
		fmt.Fprintf(os.Stderr, "stallspan: the capabilities cannot be moved to helpers: %v; unset %s to keep them\n",
			err, helper.Variable)
		os.Exit(1)
	}
}
