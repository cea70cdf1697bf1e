package agent

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	manual "github.com/stallspan/stallspan/docs"
	"github.com/stallspan/stallspan/internal/config"
)

func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Print a page of the documentation, or list them",
		Long: `Prints a page of the documentation of this version, as Markdown. Without a page it lists them. Messages
name pages in this way.`,
		Example: `  stallspan docs
  stallspan docs verdicts | less`,
		Args:              cli.Needs(0, 1, "docs prints one page: stallspan docs verdicts"),
		ValidArgsFunction: cli.CompleteOneWord(manual.Names),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return output.WriteTable(cmd.OutOrStdout(), func(t *output.Table) {
					t.Text("Pages: ",
						strings.Join(manual.Names(), ", "))
				})
			}
			text, found := manual.Page(args[0])
			if near := config.Nearest(args[0], manual.Names()); !found && near != "" {
				return cli.Usagef("there is no page %.60q: did you mean %s?", args[0], near)
			} else if !found {
				return cli.Usagef("there is no page %.60q: list them with stallspan docs", args[0])
			}
			_, err := io.WriteString(cmd.OutOrStdout(), text)
			return output.Printed(err)
		},
	}
}
