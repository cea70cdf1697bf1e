package agent

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	manual "github.com/stallspan/stallspan/docs"
	"github.com/stallspan/stallspan/internal/nearest"
)

func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Print a page of the documentation, or list them",
		Long: `Prints a page of the documentation of this version, as Markdown. Without a page it lists them. Messages
name pages in this way.`,
		Example: `  stallspan docs
  stallspan docs verdicts | less`,
		Args:              needs(0, 1, "docs prints one page: stallspan docs verdicts"),
		ValidArgsFunction: oneWord(manual.Names),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return writeTable(cmd.OutOrStdout(), func(t *table) { t.text("Pages: ", strings.Join(manual.Names(), ", ")) })
			}
			text, found := manual.Page(args[0])
			if !found {
				return noPage(args[0])
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return printed(err)
		},
	}
}

func noPage(name string) error {
	if near := nearest.Word(name, manual.Names()); near != "" {
		return usagef("there is no page %.60q: did you mean %s?", name, near)
	}
	return usage(fmt.Errorf("there is no page %.60q: list them with stallspan docs", name))
}
