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
	flags := cmd.Flags()
	flags.Func("slow-status", "`status` of a slow window's span: unset, or error (default unset)", func(text string) error {
		o.SlowStatus = text
		if text == "" || o.Validate() != nil {
			return errors.New("choose unset or error")
		}
		return nil
	})
	flags.Func("span-names", "`names` of epochs' spans: grouped, or indexed by their number (default grouped)",
		func(text string) error {
			o.Names = text
			if text == "" || o.Validate() != nil {
				return errors.New("choose grouped or indexed")
			}
			return nil
		})
}
