package agent

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// eachFlag calls do with all flags of cmd and of the commands below it.
func eachFlag(cmd *cobra.Command, do func(cmd *cobra.Command, flag *pflag.Flag)) {
	visit := func(flag *pflag.Flag) { do(cmd, flag) }
	cmd.Flags().VisitAll(visit)
	cmd.PersistentFlags().VisitAll(visit)
	for _, below := range cmd.Commands() {
		eachFlag(below, do)
	}
}

// completeValues lets a shell complete the values of flags, below cmd.
func completeValues(cmd *cobra.Command) {
	eachFlag(cmd, func(cmd *cobra.Command, flag *pflag.Flag) {
		list := flagValues[flag.Name]
		if flag.Name == "fail-on" {
			list = map[string][]string{"run": {"slow"}, "compare": {"slower"}}[cmd.Name()]
		}
		if list != nil {
			// the error is of a flag that has them already
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// plainUsages removes the backquotes that mark the value's name in help: completion would show them.
func plainUsages(cmd *cobra.Command) {
	eachFlag(cmd, func(_ *cobra.Command, flag *pflag.Flag) { _, flag.Usage = pflag.UnquoteUsage(flag) })
}
