// Package agent is the standalone program: its commands, and what they print. It assembles the packages below internal
// and takes no measurements of its own.
package agent

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/attach"
	"github.com/stallspan/stallspan/agent/internal/baseline"
	"github.com/stallspan/stallspan/agent/internal/bench"
	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/compare"
	"github.com/stallspan/stallspan/agent/internal/daemon"
	"github.com/stallspan/stallspan/agent/internal/demo"
	"github.com/stallspan/stallspan/agent/internal/events"
	"github.com/stallspan/stallspan/agent/internal/health"
	"github.com/stallspan/stallspan/agent/internal/history"
	"github.com/stallspan/stallspan/agent/internal/jobs"
	"github.com/stallspan/stallspan/agent/internal/list"
	"github.com/stallspan/stallspan/agent/internal/mark"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/page"
	"github.com/stallspan/stallspan/agent/internal/record"
	"github.com/stallspan/stallspan/agent/internal/replay"
	"github.com/stallspan/stallspan/agent/internal/run"
	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/agent/internal/top"
	"github.com/stallspan/stallspan/agent/internal/version"
)

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	if err := giveUpFileRights(); err != nil {
		cli.Say("%v", err)
		return cli.ExitFailed
	}
	log.SetOutput(io.Discard) // net/http writes what servers send to it; standard error is the wrapped program's, too
	ctx, stop := signal.NotifyContext(context.Background(), append(cli.NotIgnored(os.Interrupt), syscall.SIGTERM)...)
	defer stop()
	// A reader that closed our output must not end us before the report is written: the failed write is enough. Ignoring
	// the signal would be inherited by wrapped programs; catching it is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := Command()
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		started = true
		return giveUpCapabilities(cmd)
	}
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsages(root)
	}
	code, message := cli.ExitCode(root.ExecuteContext(ctx), started)
	if message != nil {
		cli.Say("%v", message)
	}
	return code
}

// Command is the command line, from which man pages and completions are made. Main runs it.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:           "stallspan",
		Short:         "Show where a GPU's time goes: to work, to waiting for storage, or to waiting for the CPU",
		Version:       version.Number(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Watch a program", []*cobra.Command{run.Command(), attach.Command(), mark.Command(), demo.Command()}},
		{"Look at this machine", []*cobra.Command{top.Command(), stat.Command(), page.Command(), check.Command(),
			health.Command(), bench.Command()}},
		{"Watch it all the time", []*cobra.Command{daemon.Command(), list.Command(), jobs.Command(), history.Command(),
			events.Command()}},
		{"Record and compare", []*cobra.Command{record.Command(), replay.Command(), compare.Command(), baseline.Command()}},
		{helpGroup, []*cobra.Command{docsCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
		}
		cli.Group(root, group.commands...)
	}
	load := bench.LoadCommand()
	load.Deprecated = "use stallspan bench load"
	root.AddCommand(load, check.SupportCommand())
	root.SetVersionTemplate(version.Describe() + "\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	strictDefaults(root)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(printHelp)
	root.PersistentFlags().Var(&output.Colors, output.ColorFlag, "colours on a terminal: `when` is auto, always or never")
	completeValues(root)
	return root
}
