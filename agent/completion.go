package agent

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/history"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/window"
)

// flagValues are the values of flags with few of them, for completion, by the flag's name.
var flagValues = map[string][]string{
	output.ColorFlag: {string(output.Auto), string(output.Always), string(output.Never)},
	"series":         history.Series,
	"kind":           window.KindNames(),
}

// completeValues lets a shell complete the values of flags, below cmd.
func completeValues(cmd *cobra.Command) {
	values := func(flag *pflag.Flag) {
		if flag.Name == "device" {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cli.CompleteWords(cli.DiskNames))
		}
		list := flagValues[flag.Name]
		if flag.Name == "fail-on" {
			list = map[string][]string{"run": {"slow"}, "compare": {"slower"}}[cmd.Name()]
		}
		if list != nil {
			// the error is of a flag that has them already
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().VisitAll(values)
	cmd.PersistentFlags().VisitAll(values)
	for _, below := range cmd.Commands() {
		completeValues(below)
	}
}

// plainUsages removes the backquotes that mark the value's name in help: completion would show them.
func plainUsages(cmd *cobra.Command) {
	plain := func(flag *pflag.Flag) { _, flag.Usage = pflag.UnquoteUsage(flag) }
	cmd.Flags().VisitAll(plain)
	cmd.PersistentFlags().VisitAll(plain)
	for _, below := range cmd.Commands() {
		plainUsages(below)
	}
}
