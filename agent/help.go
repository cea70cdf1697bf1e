package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/version"
)

// helpWidth is the widest help: longer lines are hard to read. Files get it, too.
const helpWidth = 100

// printHelp writes a command's help in lines of the terminal's width.
func printHelp(cmd *cobra.Command, _ []string) {
	width := helpWidth
	if screen := output.ScreenOf(cmd.OutOrStdout()); screen.Terminal() {
		width = min(width, screen.Width())
	}
	_, _ = fmt.Fprint(cmd.OutOrStdout(), helpText(cmd, width))
}

func helpText(cmd *cobra.Command, width int) string {
	var b strings.Builder
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	b.WriteString(reflow(long, width))
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		}
	}
	usage := ""
	if cmd.Runnable() {
		usage = "  " + cmd.UseLine() + "\n"
	}
	if cmd.HasAvailableSubCommands() {
		usage += "  " + cmd.CommandPath() + " [command]\n"
	}
	section("Usage", usage)
	if len(cmd.Aliases) > 0 {
		section("Aliases", "  "+cmd.NameAndAliases())
	}
	section("Examples", cmd.Example)
	for _, group := range cmd.Groups() {
		section(group.Title, commandList(cmd, group.ID, width))
	}
	section("Commands", commandList(cmd, "", width))
	flags, sections := map[string]*pflag.FlagSet{}, []string{""}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		of := cli.SectionOf(f)
		if flags[of] == nil {
			flags[of] = pflag.NewFlagSet(of, pflag.ContinueOnError)
			sections = append(sections, of)
		}
		flags[of].AddFlag(f)
	})
	slices.Sort(sections)
	for _, of := range slices.Compact(sections) {
		if flags[of] != nil {
			section(cmp.Or(of, "Flags"), flagList(flags[of], width))
		}
	}
	if cmd.HasParent() {
		section("Global flags", flagList(cmd.InheritedFlags(), width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more about a command.\n", cmd.CommandPath())
	}
	return b.String()
}

func flagList(flags *pflag.FlagSet, width int) string { return flags.FlagUsagesWrapped(width) }

func commandList(cmd *cobra.Command, group string, width int) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.GroupID != group || !c.IsAvailableCommand() && c.Name() != "help" {
			continue
		}
		start := fmt.Sprintf("  %-*s ", cmd.Commands()[0].NamePadding(), c.Name())
		for i, line := range output.WrapText(c.Short, width-len(start)) {
			if i > 0 {
				start = strings.Repeat(" ", len(start))
			}
			b.WriteString(start + line + "\n")
		}
	}
	return b.String()
}

// reflow wraps paragraphs. Empty lines and indented ones stay.
func reflow(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		for _, line := range output.WrapText(strings.Join(paragraph, " "), width) {
			b.WriteString(line + "\n")
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			end()
			b.WriteString(line + "\n")
			continue
		}
		paragraph = append(paragraph, line)
	}
	end()
	return b.String()
}

// helpGroup is the title of Cobra's own commands, and of docs.
const helpGroup = "Help"

// strictDefaults makes Cobra's own commands refuse what they do not know, and adds version, for which it
// has only a flag.
func strictDefaults(root *cobra.Command) {
	root.AddCommand(&cobra.Command{Use: "version", Short: "Print the version", Hidden: true, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Describe())
			return output.Printed(err)
		}})
	root.SetHelpCommandGroupID(helpGroup)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cli.Group(cmd)
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err == nil && len(rest) > 0 && about.Args != nil && about.HasSubCommands() {
					err = about.Args(about, rest)
				}
				return err
			}
		}
	}
}
