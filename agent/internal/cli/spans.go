package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/config"
)

// SpanFlags are the flags that say how spans show windows.
type SpanFlags struct{ config.Spans }

// Add adds the flags to a command.
func (o *SpanFlags) Add(cmd *cobra.Command) {
	choice := func(into *string, name, usage, wrong string) {
		cmd.Flags().Func(name, usage, func(text string) error {
			*into = text
			if text == "" || o.Validate() != nil {
				return errors.New(wrong)
			}
			return nil
		})
	}
	choice(&o.SlowStatus, "slow-status", "`status` of a slow window's span: unset, or error (default unset)",
		"choose unset or error")
	choice(&o.Names, "span-names", "`names` of epochs' spans: grouped, or indexed by their number (default grouped)",
		"choose grouped or indexed")
}
