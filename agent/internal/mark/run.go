package mark

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/wrap"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/window"
)

// Timeout bounds for how long an agent that hangs delays the program, at its start and at its end.
// Tests wait longer.
var Timeout = 2 * time.Second

func runCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run --kind KIND [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a program as one window",
		Long: `Begins a window, runs a program with its input, output, signals and exit code untouched, and ends
the window. Prints the result as one line on standard error. Without an agent, the program runs
all the same.`,
		Example: `  stallspan mark run --kind model_load --model resnet50 -- ./load-model`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("mark run needs a program: stallspan mark run --kind custom -- ./work"))
			}
			a, err := o.announcement(cmd)
			if err != nil {
				return cli.Usage(err)
			}
			client, err := api.FromEnvironment()
			if err != nil {
				cli.Say("warning: the program runs without a window: %v", err)
			}
			if a.PID == 0 && client != nil && client.Local() {
				a.PID = os.Getpid() // the program is a child of ours
			}
			return runInWindow(cmd.Context(), client, a, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.add(cmd, "the `process` that does the work (default: the program)")
	return cmd
}

// runInWindow runs a program in a window of its own. No problem with the window stops the program.
func runInWindow(ctx context.Context, client *api.Client, a api.Announcement, argv []string) error {
	signals := wrap.NewRelay(ctx) // also for a signal that comes while the window begins
	defer signals.Stop()
	ctx = context.WithoutCancel(ctx) // ^C is for the program
	begun := start(ctx, client, a)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	if begun.Traceparent != "" {
		cmd.Env = append(cmd.Env, "TRACEPARENT="+begun.Traceparent)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := signals.Ended()
	if err == nil {
		if err = cmd.Start(); err != nil {
			err = wrap.CannotStart(argv[0], err)
		}
	}
	if err != nil {
		how := window.Outcome{Unfinished: true, Ended: "the program could not be started", Failed: true}
		stop(ctx, client, begun, how, func(string, ...any) {}) // the line to read is why the program did not start
		return err
	}
	memory := cgroup.NewView("").WatchOOM(cmd.Process.Pid)
	signals.Start(func(s os.Signal) { wrap.PassSignal(cmd.Process, s) })
	_ = cmd.Wait() // its error only repeats the state
	signals.Stop()
	stop(ctx, client, begun, wrap.OutcomeOf(cmd.ProcessState, signals.Stopped().Signal, memory.Why()), cli.Say)
	if code := wrap.ShellCode(cmd.ProcessState); code != 0 {
		return cli.ExitError{Code: code}
	}
	return nil
}

// start begins the window. If that fails, begun has no id.
func start(ctx context.Context, client *api.Client, a api.Announcement) (begun api.Begun) {
	if client == nil {
		return begun
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	begun, err := client.Begin(ctx, a)
	if err != nil {
		cli.Say("warning: the program runs without a window: %v", cli.Unanswered(client, err))
	}
	return begun
}

func stop(ctx context.Context, client *api.Client, begun api.Begun, how window.Outcome, printf func(string, ...any)) {
	if begun.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	report, err := endWindow(ctx, client, begun.ID, how)
	if err != nil {
		printf("the window could not be ended: %v", cli.Unanswered(client, err))
		return
	}
	line, remedy := summaryOf(report)
	printf("%s", line)
	if remedy != "" {
		printf("try: %s", remedy)
	}
}
