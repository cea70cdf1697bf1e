package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/agent/internal/console"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/window"
)

// flagValues are the values of flags with few of them, for completion, by the flag's name.
var flagValues = map[string][]string{
	colorFlag: {string(console.Auto), string(console.Always), string(console.Never)},
	"series":  historySeries,
	"kind":    window.KindNames(),
}

// completeValues lets a shell complete the values of flags, below cmd.
func completeValues(cmd *cobra.Command) {
	values := func(flag *pflag.Flag) {
		if flag.Name == "device" {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, completeWords(diskNames))
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

// completeWords completes an argument or a flag with the words that list returns, and with no file. For arguments,
// those that are there already are left out.
func completeWords(list func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words := slices.DeleteFunc(list(), func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return slices.Contains(args, name) || !strings.HasPrefix(name, begun)
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// oneWord is completeWords for a command with one argument.
func oneWord(list func() []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeWords(list)(cmd, args, begun)
	}
}

// diskNames lists the block devices of this machine.
func diskNames() []string { return devices(func(*sample.Disk) bool { return true }) }

// wholeDisks lists those that are neither a partition nor on top of another one.
func wholeDisks() []string { return devices(func(d *sample.Disk) bool { return d.Leaf }) }

// devices lists block devices. If they cannot be read, nothing is completed.
func devices(choose func(*sample.Disk) bool) (names []string) {
	source, err := disk.New("")
	if err != nil {
		return nil
	}
	defer func() { _ = source.Close() }()
	var s sample.Sample
	_ = source.Read(&s) // lines that cannot be read are left out
	for i := range s.Disks {
		if d := &s.Disks[i]; choose(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// baselineNames lists the names and keys of the baselines in a file.
func baselineNames(file string) (names []string) {
	_, all, err := learned(file)
	if err != nil {
		return nil
	}
	for i := range all {
		e := &all[i]
		if name := e.Key.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
		names = append(names, fmt.Sprintf("%s\t%s, median %s", e.Key, count(len(e.Durations), "duration"),
			explain.Duration(e.Median().Seconds())))
	}
	return names
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
