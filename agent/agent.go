// Package agent is the standalone program: its commands, and what they print. It assembles what internal/ holds and
// adds no measuring of its own.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, as docs/commands.md lists them. A wrapped program's own code passes through untouched.
const (
	exitFailed     = 1   // a command other than run failed
	exitUsage      = 2   // the command line cannot be understood
	exitSlow       = 3   // run --fail-on slow: the program succeeded, a window was slow
	exitRun        = 125 // run failed by itself, before or after the program
	exitCannotRun  = 126 // the program was found and could not be started
	exitNotFound   = 127 // the program was not found
	exitSignalBase = 128 // plus the signal that ended the program
)

// failure is an error with the exit code that it leads to.
type failure struct {
	code int
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// exit ends a command with a code and no words: they have been said, or the code is another program's.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line and gives the exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), append(heeded(os.Interrupt), syscall.SIGTERM)...)
	defer stop()
	// A reader that left must not end us before the report is written: the failed write says enough. The channel is for
	// nobody; wrapped programs are not affected, as they would be if the signal were ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exit
	var failed failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &failed):
		say("%v", failed.err)
		return failed.code
	default:
		say("%v", err)
		return exitUsage
	}
}

// heeded leaves out the signals that whoever started us chose to ignore, as nohup does. Asking for one would end that,
// for us and for the program that we start.
func heeded(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

// say writes one line for a person. Standard output belongs to data and to the wrapped program.
func say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "stallspan: "+format+"\n", args...)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "stallspan",
		Short:         "Says where a GPU's time went: to work, to waiting for storage, or to waiting for the CPU",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no command: see stallspan --help", args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		runCommand(),
		demoCommand(),
		markCommand(),
		compareCommand(),
		baselineCommand(),
		agentCommand(),
		eventsCommand(),
		checkCommand(),
		healthCommand(),
		benchCommand(),
		statCommand(),
		recordCommand(),
		replayCommand(),
	)
	return root
}

// version is the module's version, or the revision that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
