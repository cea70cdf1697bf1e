package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// CompleteWords completes an argument or a flag with the words that list returns, and with no file. For arguments,
// those that are there already are left out.
func CompleteWords(list func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words := slices.DeleteFunc(list(), func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return slices.Contains(args, name) || !strings.HasPrefix(name, begun)
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOneWord is completeWords for a command with one argument.
func CompleteOneWord(list func() []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return CompleteWords(list)(cmd, args, begun)
	}
}

// DiskNames lists the block devices of this machine.
func DiskNames() []string { return devices(func(*sample.Disk) bool { return true }) }

// WholeDisks lists those that are neither a partition nor on top of another one.
func WholeDisks() []string { return devices(func(d *sample.Disk) bool { return d.Leaf }) }

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
