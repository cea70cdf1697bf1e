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

	"github.com/stallspan/stallspan/agent/internal/console"
)

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	if err := giveUpFileRights(); err != nil {
		say("%v", err)
		return exitFailed
	}
	log.SetOutput(io.Discard) // net/http writes what servers send to it; standard error is the wrapped program's, too
	ctx, stop := signal.NotifyContext(context.Background(), append(notIgnored(os.Interrupt), syscall.SIGTERM)...)
	defer stop()
	// A reader that closed our output must not end us before the report is written: the failed write is enough. Ignoring
	// the signal would be inherited by wrapped programs; catching it is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := rootCommand()
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		started = true
		colors = console.When(root.PersistentFlags().Lookup(colorFlag).Value.String())
		return giveUpCapabilities(cmd)
	}
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsages(root)
	}
	code, message := exitCode(root.ExecuteContext(ctx), started)
	if message != nil {
		say("%v", message)
	}
	return code
}

// Command is the command line, from which man pages and completions are made. Main runs it.
func Command() *cobra.Command { return rootCommand() }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "stallspan",
		Short:         "Show where a GPU's time goes: to work, to waiting for storage, or to waiting for the CPU",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	groupOf(root,
		runCommand(),
		attachCommand(),
		demoCommand(),
		markCommand(),
		compareCommand(),
		baselineCommand(),
		agentCommand(),
		eventsCommand(),
		listCommand(),
		jobsCommand(),
		historyCommand(),
		checkCommand(),
		supportCommand(),
		healthCommand(),
		benchCommand(),
		loadCommand(),
		topCommand(),
		pageCommand(),
		statCommand(),
		recordCommand(),
		replayCommand(),
		docsCommand(),
	)
	root.SetVersionTemplate(describeBuild() + "\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	strictDefaults(root)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(printHelp)
	root.PersistentFlags().Var(new(colorValue), colorFlag, "colours on a terminal: `when` is auto, always or never")
	completeValues(root)
	return root
}
